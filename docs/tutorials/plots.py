"""The plots of the tutorials, with matplotlib.

usage: /usr/bin/python3 docs/tutorials/plots.py FOLDER [--quick]

Each part below `# %%` is a cell for editors that run a script like a notebook. `--quick` takes shorter runs.
"""

# %% Where everything is
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")  # writes files, and needs no screen
import matplotlib.pyplot as plot
import numpy
import shoal

quick = "--quick" in sys.argv
folder = pathlib.Path(next((each for each in sys.argv[1:] if not each.startswith("-")), "plots"))
folder.mkdir(parents=True, exist_ok=True)
tutorials = pathlib.Path(__file__).resolve().parent

# %% The evening of docs/tutorial-researcher.md
evening = shoal.load(tutorials / "evening.yaml")
if quick:
    evening["stop_time"] = "10min"
adaptive = shoal.run(evening)
print(adaptive)

# %% Sessions and the number of peers: who was there, and when
peers, metrics = adaptive.peers, adaptive.metrics
end = adaptive.summary["virtual_seconds"]
hosts = sorted(set(peers["host"]), key=lambda name: (name.split("-")[0], int(name.split("-")[1])))
rows = numpy.array([hosts.index(name) for name in peers["host"]])
lasts = numpy.where(numpy.isnan(peers["ended_s"]), end, peers["ended_s"])
figure, (above, below) = plot.subplots(2, 1, sharex=True, figsize=(9, 6), height_ratios=(3, 1))
above.hlines(rows, peers["started_s"] / 60, lasts / 60, linewidth=5)
above.set_yticks(range(len(hosts)), hosts, fontsize=7)
above.set_title("An evening of sixteen computers")
below.step(metrics["time"] / 60, metrics["peers_alive"], where="post")
below.set_ylabel("peers")
below.set_xlabel("virtual minutes")
figure.savefig(folder / "evening.png", dpi=120, bbox_inches="tight")

# %% The same people at the same times, with equal parts
same_evening = evening.copy()
trace = folder / "evening-run" / "peers.csv"
shoal.run(evening, out=trace.parent, force=True, report=False)
for group in same_evening["peers"].values():
    group["churn"] = {"trace": str(trace)}
equal = shoal.run(same_evening, set={"averaging.split": "equal"})
figure, axes = plot.subplots(figsize=(9, 4))
for name, result in (("parts follow the lines", adaptive), ("equal parts", equal)):
    rounds = result.rounds
    done = rounds["outcome"] != "failed"
    axes.plot(rounds["ended_s"][done] / 60, (rounds["ended_s"] - rounds["started_s"])[done], "o-", markersize=3, label=name)
axes.set_title("Time of each round")
axes.set_xlabel("virtual minutes")
axes.set_ylabel("seconds")
axes.set_ylim(bottom=0)
axes.legend()
figure.savefig(folder / "split.png", dpi=120, bbox_inches="tight")

# %% Four strategies of docs/tutorial-engineer.md, beside their theory
study = {
    "averaging_study": {
        "strategies": ["moshpit", "random-groups", "gossip", "push-sum"],
        "peers": 64 if quick else 256,
        "grid": "8x8" if quick else "16x16",
        "failures": [0.01],
        "restarts": 3,
        "rounds": 30,
    }
}
averaging = shoal.run(study)
print(averaging)
(panels,) = averaging.curves.values()
title, curves = panels[0]
figure, axes = plot.subplots(figsize=(9, 5))
for name, values in curves.items():
    axes.semilogy(numpy.maximum(values, 1e-12), "--" if "theory" in name else "o-", markersize=3, label=name)
axes.set_title(title)
axes.set_xlabel("round")
axes.set_ylabel("distortion of the initial one")
axes.legend()
figure.savefig(folder / "averaging.png", dpi=120, bbox_inches="tight")

# %% The cost of a codec
codecs = shoal.load(tutorials / "codecs.yaml")
seeds = [1] if quick else [1, 2, 3]
figure, axes = plot.subplots(figsize=(9, 4))
for codec in ("none", "float16", "blockwise8", "top_k"):
    runs = [shoal.run(codecs, seed=seed, baseline=False, set={"averaging.compression": codec, "record.held_out_every": 2})
            for seed in seeds]
    measured = [~numpy.isnan(run.losses["held_out"]) for run in runs]
    losses = numpy.mean([run.losses["held_out"][at] for run, at in zip(runs, measured)], axis=0)
    sent = numpy.mean([run.summary["bytes_sent"]["averaging"] for run in runs]) / 2**20
    axes.plot(runs[0].losses["epoch"][measured[0]], losses, "o-", markersize=3, label=f"{codec}, {sent:.1f} MiB")
axes.set_title("What a codec costs")
axes.set_xlabel("epoch")
axes.set_ylabel("held-out loss, nats")
axes.legend()
figure.savefig(folder / "codecs.png", dpi=120, bbox_inches="tight")
print(f"evening.png, split.png, averaging.png and codecs.png are in {folder}")
