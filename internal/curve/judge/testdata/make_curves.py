#!/usr/bin/python3
"""Trains small models and writes how each run went: curves.csv.gz and runs.csv.

It needs Debian's python3-torch and python3-sklearn, and no network. One run takes a second or a
few on one core. Every curve is of a training that really happened here; nothing is drawn.

    make_curves.py [DIRECTORY]
"""
import csv, gzip, io, math, multiprocessing, os, sys, time, warnings

import numpy as np
import torch
from sklearn import datasets
from torch import nn

torch.set_num_threads(1)
warnings.filterwarnings("ignore")


def scaled(x):
    x = np.asarray(x, dtype=np.float32)
    return (x - x.mean(0)) / (x.std(0) + 1e-6)


def data(name, noise):
    """Returns inputs, targets and the number of classes (0: regression)."""
    rng = np.random.RandomState(7)
    bundled = {"digits": datasets.load_digits, "wine": datasets.load_wine, "cancer": datasets.load_breast_cancer,
               "iris": datasets.load_iris, "diabetes": datasets.load_diabetes}
    if name in bundled:
        x, y = bundled[name](return_X_y=True)
    elif name == "moons":
        x, y = datasets.make_moons(3000, noise=0.3, random_state=3)
    elif name == "blobs":
        x, y = datasets.make_classification(4000, 30, n_informative=8, n_classes=5, random_state=5)
    elif name == "friedman":
        x, y = datasets.make_friedman1(3000, noise=1.0, random_state=4)
    elif name == "circles":
        x, y = datasets.make_circles(2500, noise=0.15, factor=0.6, random_state=6)
    elif name == "gauss":
        x, y = datasets.make_gaussian_quantiles(n_samples=3000, n_features=12, n_classes=4, random_state=8)
    elif name == "hastie":
        x, y = datasets.make_hastie_10_2(3000, random_state=9)
        y = (y > 0).astype(int)
    elif name == "friedman3":
        x, y = datasets.make_friedman3(2500, noise=0.1, random_state=10)
    elif name == "friedman2":
        x, y = datasets.make_friedman2(2500, noise=100.0, random_state=11)
    elif name == "sparse":
        x, y = datasets.make_sparse_uncorrelated(2500, random_state=12)
    elif name == "swiss":
        x, y = datasets.make_swiss_roll(2500, noise=1.0, random_state=13)
    elif name == "regression":
        x, y = datasets.make_regression(2500, 15, n_informative=6, noise=20.0, random_state=15)
    elif name == "scurve":
        x, y = datasets.make_s_curve(2500, noise=0.3, random_state=16)
    elif name == "three":
        x, y = datasets.make_classification(2500, 12, n_informative=5, n_classes=3, flip_y=0.05, random_state=17)
    elif name == "centers":
        x, y = datasets.make_blobs(3000, n_features=8, centers=6, cluster_std=5.0, random_state=14)
    x = scaled(x)
    if name in ("diabetes", "friedman", "friedman3", "friedman2", "sparse", "swiss", "regression", "scurve"):
        return x, scaled(y.reshape(-1, 1))[:, 0], 0
    y = np.asarray(y)
    classes = int(y.max()) + 1
    wrong = rng.rand(len(y)) < noise
    y = np.where(wrong, rng.randint(0, classes, len(y)), y)
    return x, y, classes


def model(kind, width, outputs, drop):
    if kind == "linear":
        return nn.Linear(width, outputs)
    if kind == "mlp":
        return nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Dropout(drop), nn.Linear(64, outputs))
    if kind == "deep":
        return nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(drop),
                             nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, outputs))
    if kind == "norm":
        return nn.Sequential(nn.Linear(width, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(drop), nn.Linear(64, outputs))
    if kind == "tanh":
        return nn.Sequential(nn.Linear(width, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, outputs))
    if kind == "conv":
        return nn.Sequential(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2),
                             nn.ReLU(), nn.Flatten(), nn.Dropout(drop), nn.Linear(64, outputs))
    if kind == "sigmoid":  # which takes long to begin to learn
        return nn.Sequential(nn.Linear(width, 48), nn.Sigmoid(), nn.Linear(48, 48), nn.Sigmoid(), nn.Linear(48, 48), nn.Sigmoid(),
                             nn.Linear(48, outputs))
    raise ValueError(kind)


def rate(schedule, peak, step, steps):
    """The learning rate at a step."""
    warm = steps // 20
    at = step / steps
    if schedule == "constant":
        return peak
    if schedule == "warmup":
        return peak * min(1, (step + 1) / warm)
    if schedule == "cosine":
        if step < warm:
            return peak * (step + 1) / warm
        return peak * 0.5 * (1 + math.cos(math.pi * (step - warm) / (steps - warm)))
    if schedule == "step":
        return peak * 0.1 ** ((at >= 0.4) + (at >= 0.7))
    if schedule == "early-step":  # the last drop comes early, a long tail follows
        return peak * 0.1 ** ((at >= 0.15) + (at >= 0.3))
    if schedule == "wsd":
        if step < warm:
            return peak * (step + 1) / warm
        return peak if at < 0.8 else peak * max(0.01, (1 - at) / 0.2)
    if schedule == "cyclic":
        where = at * 6 % 1
        return peak * (0.05 + 0.95 * (1 - abs(2 * where - 1)))
    if schedule == "reduce":  # as the validation loss stops falling: train does it
        return peak
    raise ValueError(schedule)


# The step at which the last change of the rate comes, as a share of the run: what a user knows
# of the schedule.
LAST = {"constant": 0, "warmup": 0.05, "cosine": 1, "step": 0.7, "early-step": 0.3, "wsd": 1, "cyclic": 1, "reduce": 1}


def last_change(run):
    if run["kind"].endswith("diverge-late"):
        return run["steps"]
    last = LAST[run["schedule"]] * run["steps"]
    harm = run.get("harm")
    if harm and harm[2] == "rate":
        last = max(last, harm[0] * run["steps"] + harm[1] + 1)
    return int(last)


def train(run):
    torch.manual_seed(run["seed"])
    np.random.seed(run["seed"])
    x, y, classes = data(run["data"], run.get("noise", 0))
    order = np.random.RandomState(1).permutation(len(x))
    cut = int(len(x) * 0.6)
    tx, ty = torch.tensor(x[order[:cut]]), torch.tensor(y[order[:cut]])
    vx, vy = torch.tensor(x[order[cut:]]), torch.tensor(y[order[cut:]])
    if run.get("few"):
        tx, ty = tx[:run["few"]], ty[:run["few"]]
    if run["kind"].endswith("stuck-labels"):
        ty = ty[torch.randperm(len(ty))]
    net = model(run["model"], x.shape[1], max(1, classes), run.get("drop", 0))
    if run["kind"].endswith("stuck-dead"):  # every ReLU is dead: no gradient reaches anything but the last bias
        with torch.no_grad():
            for layer in [m for m in net if isinstance(m, nn.Linear)][:-1]:
                layer.bias.fill_(-1e3)
            net[-1].bias.requires_grad_(False)
    peak, decay = run["lr"], run.get("decay", 0)
    if run["optimizer"] == "adam":
        opt = torch.optim.Adam(net.parameters(), lr=peak, weight_decay=decay)
    else:
        opt = torch.optim.SGD(net.parameters(), lr=peak, momentum=run.get("momentum", 0.9), weight_decay=decay)
    lossfn = nn.CrossEntropyLoss() if classes else nn.MSELoss()
    ty, vy = (ty.long(), vy.long()) if classes else (ty.float(), vy.float())
    out = (lambda a: net(a)) if classes else (lambda a: net(a)[:, 0])
    steps, batch = run["steps"], min(run.get("batch", 64), len(tx))
    every = steps // 250
    check = 3 * every
    rows, perm, at = [], torch.randperm(len(tx)), 0
    factor, lowest, waited = 1.0, math.inf, 0
    for step in range(steps):
        if at + batch > len(tx):
            perm, at = torch.randperm(len(tx)), 0
        pick = perm[at:at + batch]
        at += batch
        bx, by = tx[pick], ty[pick]
        lr = factor * rate(run["schedule"], peak, step, steps)
        harm = run.get("harm")
        if harm and harm[0] * steps <= step < harm[0] * steps + harm[1]:
            if harm[2] == "rate":
                lr *= harm[3]
            elif harm[2] == "inputs":
                bx = bx * harm[3]
            elif harm[2] == "labels":
                by = by[torch.randperm(len(by))]
        if run["kind"].endswith("diverge-late") and step > run["harm_at"] * steps:
            lr *= 1.0 + run["growth"] * (step - run["harm_at"] * steps)
        for group in opt.param_groups:
            group["lr"] = lr
        net.train()
        loss = lossfn(out(bx), by)
        opt.zero_grad()
        loss.backward()
        clip = run.get("clip", 0) or float("inf")
        norm = nn.utils.clip_grad_norm_(net.parameters(), clip)
        opt.step()
        row = [step + 1, float(loss), "", lr, float(norm)]
        if (step + 1) % check == 0:
            net.eval()
            with torch.no_grad():
                o = out(vx)
                row[2] = float(lossfn(o, vy))
            waited = 0 if row[2] < lowest else waited + 1
            lowest = min(lowest, row[2])
            if run["schedule"] == "reduce" and waited >= 8:
                factor, waited = factor * 0.3, 0
        if step == 0 or (step + 1) % every == 0:
            rows.append(row)
    return rows


def runs():
    """Lists every run: its name and what it is made of."""
    all = []

    def add(kind, **run):
        run["kind"] = kind
        run["seed"] = len(all) + 1
        run.setdefault("optimizer", "sgd")
        run.setdefault("schedule", "constant")
        run["name"] = "%s-%s-%s-%s-%03d" % (kind, run["data"], run["model"], run["schedule"], len(all))
        all.append(run)

    schedules = ["constant", "warmup", "cosine", "step", "early-step", "wsd", "cyclic"]
    sets = [("digits", "mlp"), ("digits", "conv"), ("blobs", "deep"), ("moons", "mlp"), ("friedman", "mlp"),
            ("cancer", "linear"), ("wine", "tanh"), ("diabetes", "linear")]
    for i, (name, kind) in enumerate(sets):  # long healthy runs
        for schedule in schedules:
            noise = 0.1 if name in ("digits", "blobs") else 0
            add("healthy", data=name, model=kind, schedule=schedule, lr=0.02 if i % 2 else 0.05, steps=2500,
                noise=noise, decay=3e-3, drop=0.2 if kind in ("mlp", "conv") else 0)
    for name, kind in [("digits", "norm"), ("blobs", "mlp"), ("moons", "deep"), ("iris", "mlp")]:  # with Adam
        for schedule in ["constant", "cosine", "wsd", "step"]:
            add("healthy", data=name, model=kind, schedule=schedule, optimizer="adam", lr=2e-3, steps=2500, noise=0.05,
                decay=1e-3)
    for name, kind in [("digits", "mlp"), ("blobs", "mlp"), ("friedman", "mlp")]:
        add("healthy", data=name, model=kind, schedule="reduce", lr=0.05, steps=2500, decay=1e-3, noise=0.1 if name != "friedman" else 0)
    for name in ["digits", "blobs", "iris"]:
        for lr in [0.1, 0.3]:
            add("late", data=name, model="sigmoid", lr=lr, steps=2500)
    for name, kind in [("digits", "mlp"), ("digits", "linear"), ("blobs", "linear"), ("friedman", "tanh"),
                       ("cancer", "norm"), ("moons", "tanh")]:  # short: stopped by its schedule before it is done
        for lr in [1e-3, 4e-3]:
            add("slow", data=name, model=kind, lr=lr, steps=1500, momentum=0.5)
    for name, kind in [("digits", "deep"), ("blobs", "deep"), ("wine", "mlp"), ("cancer", "deep"), ("iris", "deep")]:
        for few in [30, 80]:
            add("overfit", data=name, model=kind, optimizer="adam", lr=2e-3, steps=2000, few=few, noise=0.2)
    for i, (name, kind) in enumerate([("digits", "mlp"), ("digits", "conv"), ("blobs", "deep"), ("friedman", "mlp"), ("moons", "deep"),
                                      ("diabetes", "linear"), ("cancer", "mlp")]):
        add("diverge", data=name, model=kind, lr=[8.0, 3.0, 5.0, 2.0, 20.0, 3.0, 30.0][i], steps=1500)
        add("diverge-late", data=name, model=kind, lr=0.03, steps=2500, harm_at=0.4, growth=[0.5, 2.0][i % 2])
        add("diverge-late", data=name, model=kind, lr=1e-3, optimizer="adam", steps=2500, harm_at=0.6, growth=4.0)
    for name, kind in [("digits", "mlp"), ("digits", "deep"), ("blobs", "mlp"), ("moons", "mlp"), ("friedman", "deep"), ("cancer", "deep")]:
        add("stuck-dead", data=name, model=kind, lr=0.01, steps=1200)
    for name, kind in [("digits", "mlp"), ("blobs", "mlp"), ("friedman", "mlp")]:
        add("stuck-rate", data=name, model=kind, lr=1e-9, steps=1200)
        add("stuck-labels", data=name, model=kind, lr=1e-3, steps=1200, momentum=0)
    for i, (name, kind) in enumerate([("digits", "mlp"), ("digits", "conv"), ("blobs", "deep"), ("moons", "deep"), ("friedman", "mlp"),
                                      ("cancer", "mlp"), ("digits", "norm")]):
        for schedule in ["constant", "cosine"]:
            add("spike", data=name, model=kind, schedule=schedule, optimizer="adam", lr=1e-3, steps=2500, decay=1e-3,
                harm=(0.15, 2 + i, "rate", 60))
        add("spike", data=name, model=kind, lr=0.03, steps=2500, harm=(0.18, 5, "inputs", 12), clip=5, noise=0.05)
        add("spike-long", data=name, model=kind, lr=1e-3, optimizer="adam", steps=2500, harm=(0.12, 60 + 20 * i, "labels"), noise=0.05)
        add("spike-long", data=name, model=kind, lr=1e-3, optimizer="adam", steps=2500, harm=(0.14, 20 + 10 * i, "rate", 100))
    # Added later, with other data: the first time, and the second.
    for i, (name, kind) in enumerate([("circles", "mlp"), ("gauss", "deep"), ("hastie", "mlp"), ("friedman3", "tanh")]):
        for schedule in schedules:
            add("other-healthy", data=name, model=kind, schedule=schedule, lr=[0.03, 0.01, 0.05, 0.02, 0.03][i], steps=2000, decay=[0, 2e-3][i % 2],
                noise=0 if name == "friedman3" else 0.05)
        add("other-healthy", data=name, model=kind, optimizer="adam", lr=2e-3, steps=2000, decay=1e-3)
        add("other-overfit", data=name, model="deep", optimizer="adam", lr=1e-3, steps=1750, few=60, noise=0 if name == "friedman3" else 0.1)
        add("other-diverge", data=name, model=kind, lr=[40.0, 4.0, 15.0, 3.0, 1.0][i], steps=1500)
        add("other-diverge-late", data=name, model=kind, lr=0.02, steps=2000, harm_at=0.3 + 0.1 * i, growth=[1.0, 3.0][i % 2])
        add("other-stuck-dead", data=name, model="deep", lr=0.01, steps=1250)
        add("other-spike", data=name, model=kind, lr=0.02, steps=2000, harm=(0.15, 6, "rate", 50), clip=10)
        add("other-spike-long", data=name, model=kind, optimizer="adam", lr=1e-3, steps=2000, harm=(0.1, 100, "labels"))
        add("other-late", data=name, model="sigmoid", lr=0.3, steps=2500)
    # Those of the group fresh were trained after the rules were final.
    for group, of in (("other", [("friedman2", "deep"), ("sparse", "norm"), ("swiss", "mlp"), ("centers", "tanh")]),
                      ("fresh", [("regression", "mlp"), ("scurve", "deep"), ("three", "norm")])):
        for i, (name, kind) in enumerate(of):
            for schedule in schedules:
                add(group + "-healthy", data=name, model=kind, schedule=schedule, lr=[0.01, 0.02, 0.04, 0.03][i], steps=2000, decay=[2e-3, 0][i % 2],
                    noise=0.05 if name in ("centers", "three") else 0)
            add(group + "-healthy", data=name, model=kind, optimizer="adam", lr=1e-3, steps=2000, decay=1e-3)
            add(group + "-overfit", data=name, model="deep", optimizer="adam", lr=1e-3, steps=1750, few=60)
            add(group + "-diverge", data=name, model=kind, lr=[2.0, 6.0, 3.0, 30.0][i], steps=1500)
            add(group + "-diverge-late", data=name, model=kind, lr=0.02, steps=2000, harm_at=0.3 + 0.1 * i, growth=[3.0, 1.0][i % 2])
            add(group + "-stuck-dead", data=name, model="deep", lr=0.01, steps=1250)
            add(group + "-spike", data=name, model=kind, lr=0.02, steps=2000, harm=(0.15, 4, "rate", 40), clip=10)
            add(group + "-spike-long", data=name, model=kind, optimizer="adam", lr=1e-3, steps=2000, harm=(0.1, 80, "labels"))
            add(group + "-late", data=name, model="sigmoid", lr=0.2, steps=2500)
    return all


def short(v, digits):
    return "" if v == "" else ("%.*g" % (digits, v))


def timed(run):
    """Trains, and returns the rows and the seconds of CPU time that it took."""
    begun = time.process_time()
    rows = train(run)
    seconds = time.process_time() - begun
    print(run["name"], rows[0][1], "->", rows[-1][1], "%.1f s" % seconds, flush=True)
    return rows, seconds


def main():
    where = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    text, table = io.StringIO(), []
    curves = csv.writer(text, lineterminator="\n")
    curves.writerow(["run", "step", "loss", "val_loss", "lr", "grad_norm"])
    with multiprocessing.Pool(int(os.environ.get("PROCESSES", "2"))) as pool:
        trained = pool.map(timed, runs(), chunksize=1)
    for run, (rows, seconds) in zip(runs(), trained):
        table.append([run["name"], run["kind"], run["data"], run["model"], run["schedule"], run["steps"], last_change(run), "%.3f" % seconds])
        for i, row in enumerate(rows):
            curves.writerow([run["name"] if i == 0 else "", row[0]] + [short(v, n) for v, n in zip(row[1:], (3, 5, 3, 1))])
    with open(os.path.join(where, "curves.csv.gz"), "wb") as out, gzip.GzipFile("", "wb", 9, out, mtime=0) as packed:
        packed.write(text.getvalue().encode())
    with open(os.path.join(where, "runs.csv"), "w", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(["run", "kind", "data", "model", "schedule", "steps", "last_change", "seconds"])
        rows.writerows(table)


if __name__ == "__main__":
    main()
