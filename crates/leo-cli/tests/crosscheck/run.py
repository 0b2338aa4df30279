"""Runs models in ONNX Runtime.

Usage: run.py MODEL SAMPLES OUTPUTS [MODEL SAMPLES OUTPUTS ...]

Each model must pass onnx's checker. Its first output for SAMPLES (.npy) is written to OUTPUTS (.npy).
"""

import sys

import numpy as np
import onnx
import onnxruntime

arguments = sys.argv[1:]
for model, samples, outputs in zip(arguments[::3], arguments[1::3], arguments[2::3], strict=True):
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    np.save(outputs, session.run(None, {name: np.load(samples)})[0])
