"""Makes the files in exported/: networks as PyTorch exports them, with samples and what PyTorch computes for them.

Usage: export_torch.py FOLDER

Needs torch and onnxscript, which are too large to install for every test run; so its results are kept in the project.
Each network is exported by both of PyTorch's exporters.
"""

import pathlib
import sys
import warnings

import numpy as np
import onnx
import torch
from torch import nn


class Viewed(nn.Module):
    """Flattens by `view`, which the older exporter writes as arithmetic with shapes."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(48, 10), nn.ReLU(), nn.Linear(10, 3))

    def forward(self, x):
        return self.layers(x.view(x.size(0), -1))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 2)

    def forward(self, x):
        h = torch.relu(self.first(x))
        return torch.log_softmax(self.last(torch.relu(h + self.second(h))), -1)


class Normalised(nn.Module):
    def __init__(self):
        super().__init__()
        norm = nn.BatchNorm1d(12)
        norm.running_mean, norm.running_var = torch.randn(12), torch.rand(12) + 0.5
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(48, 12), norm, nn.ReLU(), nn.Dropout(0.3),
                                    nn.Linear(12, 4), nn.Softmax(dim=1))

    def forward(self, x):
        return self.layers((x - 0.1307) / 0.3081)


def plain():
    return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 2))


def main(folder):
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    networks = {
        "viewed": (Viewed(), (4, 3, 4, 4)),
        "residual": (Residual(), (4, 6)),
        "normalised": (Normalised(), (4, 3, 4, 4)),
        "positions": (plain(), (4, 3, 5)),
        "doubles": (plain().double(), (4, 5)),
    }
    for name, (network, shape) in networks.items():
        network.eval()
        x = torch.randn(*shape, dtype=next(network.parameters()).dtype)
        for exporter in ("older", "newer"):
            stem = folder / f"{name}_{exporter}"
            if exporter == "older":
                torch.onnx.export(network, (x,), f"{stem}.onnx", dynamo=False, input_names=["x"],
                                  dynamic_axes={"x": {0: "batch"}})
            else:
                torch.onnx.export(network, (x,), f"{stem}.onnx", dynamo=True, verbose=False,
                                  dynamic_shapes=({0: torch.export.Dim("batch")},))
            without_stack_traces(f"{stem}.onnx")
            np.save(f"{stem}.x.npy", x.numpy())
            np.save(f"{stem}.y.npy", network(x).detach().numpy())
        for empty in folder.glob("*.data"):
            if empty.stat().st_size == 0:
                empty.unlink()


def without_stack_traces(path):
    """The newer exporter writes the paths of the exporting machine into every node."""
    model = onnx.load(path, load_external_data=False)
    for holder in [*model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output]:
        kept = [entry for entry in holder.metadata_props if "stack_trace" not in entry.key]
        del holder.metadata_props[:]
        holder.metadata_props.extend(kept)
    pathlib.Path(path).write_bytes(model.SerializeToString())


main(pathlib.Path(sys.argv[1]))
