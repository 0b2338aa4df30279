"""Measures how long networks take in ONNX Runtime, on one core.

Usage: speed.py BEFORE AFTER [BEFORE AFTER ...]

Prints for each pair the microseconds that one sample takes, alone and in a batch of 256, before and after, and the ratio. Runs of the two
take turns, and the fastest of each counts.
"""

import sys
import time

import numpy as np
import onnxruntime


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def once(session, samples, runs):
    name = session.get_inputs()[0].name
    start = time.perf_counter()
    for _ in range(runs):
        session.run(None, {name: samples})
    return (time.perf_counter() - start) / runs / len(samples)


paths = sys.argv[1:]
for before, after in zip(paths[::2], paths[1::2], strict=True):
    sessions = [session(before), session(after)]
    width = sessions[0].get_inputs()[0].shape[-1]
    for batch, runs in [(1, 100), (256, 4)]:
        samples = np.random.default_rng(0).random((batch, width), dtype=np.float32)
        times = np.array([[once(each, samples, runs) for each in sessions] for _ in range(25)]).min(axis=0) * 1e6
        print(f"{before}\t{batch}\t{times[0]:.2f}\t{times[1]:.2f}\t{times[0] / times[1]:.2f}")
