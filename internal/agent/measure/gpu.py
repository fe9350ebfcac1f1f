# Measures the GPUs of this host that no process uses, and prints the speeds as JSON.
import json, subprocess, sys, time

def done(error=None, gpus=()):
    print(json.dumps({"error": error or "", "gpus": list(gpus)}))
    sys.exit(0)

try:
    import torch
except ImportError as e:
    done("torch cannot be imported: %s" % e)
if not torch.cuda.is_available():
    done("torch finds no GPU")
try:
    # A GPU that somebody uses is neither measured nor disturbed.
    busy = subprocess.run(["nvidia-smi", "--query-compute-apps=gpu_uuid", "--format=csv,noheader"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, timeout=5).stdout.decode()
except (OSError, subprocess.SubprocessError) as e:
    done("it is not known which GPUs are in use: %s" % e)

def best(device, units, f, limit=0.15):
    f()  # the first call sets things up
    torch.cuda.synchronize(device)
    top, until = 0.0, time.perf_counter() + limit
    while time.perf_counter() < until:
        begun = time.perf_counter()
        f()
        torch.cuda.synchronize(device)
        top = max(top, units / (time.perf_counter() - begun))
    return top

def measure(i):
    properties = torch.cuda.get_device_properties(i)
    gpu = {"index": i, "model": properties.name, "error": ""}
    uuid = str(getattr(properties, "uuid", ""))
    if not uuid and busy.strip():
        gpu["error"] = "it is not known whether it is in use"
        return gpu
    if uuid and uuid in busy:
        gpu["error"] = "it is in use"
        return gpu
    try:
        device, n, size = "cuda:%d" % i, 4096, 64 << 20
        with torch.cuda.device(i):  # pinned memory needs a device, and must not take another one
            a = torch.ones((n, n), dtype=torch.float16, device=device)
            b, c = torch.ones_like(a), torch.empty_like(a)
            gpu["matmul"] = best(device, 2.0 * n ** 3, lambda: torch.mm(a, b, out=c))
            x = torch.ones(size, dtype=torch.uint8, device=device)
            y = torch.empty_like(x)
            gpu["copy"] = best(device, float(size), lambda: y.copy_(x))
            h = torch.ones(size, dtype=torch.uint8).pin_memory()
            gpu["upload"] = best(device, float(size), lambda: y.copy_(h, non_blocking=True))
    except Exception as e:
        gpu["error"] = "%s: %s" % (type(e).__name__, (str(e).splitlines() or [""])[0])
    return gpu

done(gpus=[measure(i) for i in range(min(torch.cuda.device_count(), 16))])
