"""Makes digits.onnx and digits.npy: a small network that reads handwritten digits, and ten samples for it.

Usage: make_digits.py FOLDER

Needs scikit-learn and skl2onnx, which `make test` installs into .venv.
"""

import pathlib
import sys
import warnings

import numpy as np
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

folder = pathlib.Path(sys.argv[1])
images, labels = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32)
train, test, train_labels, test_labels = train_test_split(images, labels, random_state=0)
warnings.simplefilter("ignore")
classifier = MLPClassifier(hidden_layer_sizes=(32, 16), alpha=0.01, max_iter=300, random_state=0)
classifier.fit(train, train_labels)
print("accuracy on", len(test), "held-out digits:", classifier.score(test, test_labels))

model = to_onnx(classifier, images[:1], options={"zipmap": False}, target_opset=17)
(folder / "digits.onnx").write_bytes(model.SerializeToString())
one_of_each = [int(np.flatnonzero(test_labels == digit)[0]) for digit in range(10)]
np.save(folder / "digits.npy", test[one_of_each])
