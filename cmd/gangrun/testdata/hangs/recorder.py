# A rank with a flight recorder, as that of PyTorch: it makes a FIFO, and writes a dump of its collectives if something
# is written to the FIFO. All ranks print some steps, and then stand in the same function. One rank has not called the
# collective that the others have called.
import os, pickle, sys, threading, time

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
missing = int(sys.argv[1])


def call(seq, state):
    return {
        "frames": [{"name": "all_reduce", "filename": "/opt/torch/distributed/distributed_c10d.py", "line": 2806},
                   {"name": "average", "filename": __file__, "line": 12}],
        "record_id": seq, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": seq, "p2p_seq_id": 0, "op_id": seq,
        "profiling_name": "nccl:all_reduce", "input_sizes": [[4]], "input_dtypes": ["Float"], "output_sizes": [[4]], "output_dtypes": ["Float"],
        "state": state, "retired": state == "completed", "timeout_ms": 600000, "is_p2p": False,
    }


def dump():
    calls = [call(seq, "completed") for seq in range(1, 7)]
    if rank != missing:
        calls.append(call(7, "started"))
    group = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(world)))}}
    with open(os.environ["TORCH_FR_DUMP_TEMP_FILE"] + str(rank), "wb") as f:
        pickle.dump({"version": "2.10", "pg_config": group, "pg_status": {}, "entries": calls}, f, protocol=2)


def monitor():
    path = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + str(rank) + ".pipe"
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    while True:
        if os.read(pipe, 128):
            dump()
        time.sleep(0.1)


if "TORCH_NCCL_DEBUG_INFO_PIPE_FILE" in os.environ and int(os.environ["TORCH_FR_BUFFER_SIZE"]) > 0:
    threading.Thread(target=monitor, daemon=True).start()
for step in range(1, 7):
    print("step", step, "loss", 1 / step, flush=True)
    time.sleep(0.2)
if sys.argv[2:] == ["timeout"]:  # as PyTorch ends a gang in which ranks wait for too long
    dump()
    open(f"dumped.{rank}", "x").close()
    while not all(os.path.exists(f"dumped.{r}") for r in range(world)):
        time.sleep(0.02)
    if rank == (missing + 1) % world:
        print("[rank%d]:[E1114 09:50:59.789610635 ProcessGroupNCCL.cpp:683] [Rank %d] Watchdog caught collective operation timeout: "
              "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=1000) ran for 1029 milliseconds before timing out." % (rank, rank), file=sys.stderr, flush=True)
        os.abort()
threading.Event().wait()
