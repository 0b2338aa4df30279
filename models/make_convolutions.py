"""Makes the networks of models/convolutional: small convolutional networks that read handwritten digits.

Usage: make_convolutions.py [--data FOLDER] [--network NAME] [-o FOLDER]

Needs MNIST, by default where `leo data mnist` puts it, and PyTorch, which the tests do without:
`pip install torch onnx`.

Two recipes. The usual one is Adam with weight decay as l2, on everything. The sparse one treats batch normalisations in
its own way: plain gradient steps, and after each a threshold (the proximal step of a group lasso) for scale and shift
of a channel together, and of all channels that can only leave with it. So both become exactly 0, where l1 in the loss
makes them small at most. Such a channel is 0 whatever comes, and as the ReLU after it lets no gradient through at 0, it
stays so.
"""

import argparse
import gzip
import hashlib
import json
import pathlib
import time
import warnings

import numpy as np
import onnx
import torch
from torch import nn
from torch.nn import functional

# The last of the training images choose hyperparameters; no network is trained on them.
VALIDATION = 5_000
OPERATOR_SET = 17


def convolution(inputs, outputs, size=3, stride=1, groups=1):
    """A convolution and its batch normalisation, whose shift stands for a bias."""
    kernel = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, groups=groups, bias=False)
    return nn.Sequential(kernel, nn.BatchNorm2d(outputs))


def head(channels, hidden):
    return nn.Sequential(
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, hidden), nn.ReLU(), nn.Linear(hidden, 10)
    )


class Depthwise(nn.Module):
    """A MobileNet: convolutions of each channel by itself, and then of all channels at each position by itself."""

    def __init__(self, stem=16, blocks=((32, 1), (64, 2), (96, 1)), hidden=32):
        super().__init__()
        self.stem = convolution(1, stem, stride=2)
        self.blocks = nn.ModuleList()
        channels = stem
        for outputs, stride in blocks:
            depthwise = convolution(channels, channels, stride=stride, groups=channels)
            self.blocks.append(nn.ModuleList([depthwise, convolution(channels, outputs, size=1)]))
            channels = outputs
        self.head = head(channels, hidden)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        for depthwise, pointwise in self.blocks:
            x = torch.relu(pointwise(torch.relu(depthwise(x))))
        return self.head(x)

    def groups(self):
        """Batch normalisations of channels that can only go together: a channel, and what is made of it alone."""
        makers, together = self.stem, []
        for depthwise, pointwise in self.blocks:
            together.append([makers[1], depthwise[1]])
            makers = pointwise
        return [*together, [makers[1]]]


class Residual(nn.Module):
    """A ResNet: what a block computes is added to what it reads, where need be after a convolution of its own."""

    def __init__(self, stem=16, blocks=((16, 12, 1), (24, 16, 2), (24, 12, 1)), hidden=32):
        super().__init__()
        self.stem = convolution(1, stem, stride=2)
        self.blocks = nn.ModuleList()
        channels = stem
        for outputs, inner, stride in blocks:
            changes = stride > 1 or channels != outputs
            shortcut = convolution(channels, outputs, size=1, stride=stride) if changes else nn.Identity()
            first, second = convolution(channels, inner, stride=stride), convolution(inner, outputs)
            self.blocks.append(nn.ModuleList([first, second, shortcut]))
            channels = outputs
        self.head = head(channels, hidden)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        for first, second, shortcut in self.blocks:
            x = torch.relu(shortcut(x) + second(torch.relu(first(x))))
        return self.head(x)

    def groups(self):
        """As above: all that is added up into a channel of the stream goes together."""
        stream, together = [self.stem[1]], []
        for first, second, shortcut in self.blocks:
            together.append([first[1]])
            if not isinstance(shortcut, nn.Identity):
                together.append(stream)
                stream = [shortcut[1]]
            stream.append(second[1])
        return [*together, stream]


@torch.no_grad()
def shrink(groups, by, least):
    """A proximal step: what makes a group of channels, as one vector, gets so much shorter, or 0 if that was all."""
    for group in groups:
        # The fewer there are, the faster the others would go.
        if (group[0].weight != 0).float().mean() < least:
            continue
        vectors = torch.stack([p for norm in group for p in norm.parameters()])
        length = vectors.norm(dim=0)
        left = (length - by * len(group) ** 0.5).clamp(min=0)
        # All of a layer can shrink together and change nothing, because the batch normalisation that comes next divides
        # by it; then gradients grow, and steps are too long. So the layer is brought back to its length: its channels
        # compete.
        again = length.norm() / left.norm().clamp(min=1e-12)
        for vector, new in zip((p for norm in group for p in norm.parameters()), vectors * left / length * again):
            vector.copy_(new.nan_to_num(0))


@torch.no_grad()
def soften(weight, by):
    """The same for single weights, as those of the dense layer."""
    weight.copy_(weight.sign() * (weight.abs() - by).clamp(min=0))


# A layer is left alone when less than a share of its channels (`least`) is there, and all of them after so many epochs
# (`l1_epochs`). models/README.md says what happens without.
USUAL = {"learning_rate": 0.003, "l2": 1e-4}
SPARSE = {**USUAL, "norm_learning_rate": 0.1, "l1": 0.02, "least": 0.6, "l1_dense": 1e-2}
RECIPES = {
    "depthwise": (Depthwise, {"epochs": 24, **USUAL}),
    "depthwise-l1": (Depthwise, {"epochs": 24, "l1_epochs": 10, **SPARSE}),
    "residual": (Residual, {"epochs": 18, "l1_epochs": 8, **SPARSE}),
}


def read(folder, part):
    """Images as bytes and their labels."""

    def unpack(kind):
        packed = folder / f"{part}-{kind}-ubyte.gz"
        return gzip.decompress(packed.read_bytes()) if packed.exists() else packed.with_suffix("").read_bytes()

    images = np.frombuffer(unpack("images-idx3"), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    return images, np.frombuffer(unpack("labels-idx1"), np.uint8, offset=8)


def tensors(images, labels):
    return torch.from_numpy(images.astype(np.float32) / 255), torch.from_numpy(labels.astype(np.int64))


def accuracy(network, images, labels):
    network.eval()
    with torch.no_grad():
        right = sum((network(x).argmax(1) == y).sum().item() for x, y in zip(images.split(500), labels.split(500)))
    return right / len(labels)


def train(network, images, labels, recipe, batch, tell):
    """Both recipes; the learning rates fall to 0 as a cosine does."""
    groups = network.groups() if "l1" in recipe else []
    norms = {id(p) for group in groups for norm in group for p in norm.parameters()}
    others = [p for p in network.parameters() if id(p) not in norms]
    optimisers = [torch.optim.Adam(others, recipe["learning_rate"], weight_decay=recipe["l2"])]
    if groups:
        scales = [p for p in network.parameters() if id(p) in norms]
        optimisers.append(torch.optim.SGD(scales, recipe["norm_learning_rate"]))
    steps = recipe["epochs"] * (len(labels) // batch)
    schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps) for optimiser in optimisers]
    hidden = network.head[2].weight
    for epoch in range(recipe["epochs"]):
        network.train()
        for chosen in torch.randperm(len(labels))[: len(labels) // batch * batch].split(batch):
            loss = functional.cross_entropy(network(images[chosen]), labels[chosen])
            for optimiser in optimisers:
                optimiser.zero_grad()
            loss.backward()
            for optimiser in optimisers:
                optimiser.step()
            # Once it is settled which channels go, the others get back what the threshold took from them.
            if groups and epoch < recipe["l1_epochs"]:
                shrink(groups, schedules[1].get_last_lr()[0] * recipe["l1"], recipe["least"])
                soften(hidden, schedules[0].get_last_lr()[0] * recipe["l1_dense"])
            for schedule in schedules:
                schedule.step()
        tell(epoch)


def off(network):
    """How many channels have a scale of 0 and no shift above it, of how many, for each group."""

    def is_off(norm):
        return (norm.weight == 0) & (norm.bias <= 0)

    return [(torch.stack([is_off(norm) for norm in group]).all(0).sum().item(), len(group[0].bias))
            for group in network.groups()]


def export(network, path, metadata):
    network.eval()
    example = torch.zeros(1, 1, 28, 28)
    # The older exporter, which folds batch normalisation into the convolutions.
    warnings.simplefilter("ignore")
    names = {"input_names": ["input"], "output_names": ["logits"]}
    axes = {"input": {0: "N"}, "logits": {0: "N"}}
    torch.onnx.export(network, (example,), path, opset_version=OPERATOR_SET, dynamo=False, dynamic_axes=axes, **names)
    model = onnx.load(path)
    # The exporter may write there where the source lay.
    for node in model.graph.node:
        node.doc_string = ""
    onnx.helper.set_model_props(model, metadata)
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    cache = pathlib.Path.home() / ".cache/leo/data/mnist"
    parser.add_argument("--data", type=pathlib.Path, default=cache, help="the folder with the four files of MNIST")
    parser.add_argument("--network", choices=RECIPES, action="append", help="one of them (default: all)")
    parser.add_argument("-o", "--out", type=pathlib.Path, default=pathlib.Path("."), help="where the files go")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=NUMBER", help="changes the recipe")
    parser.add_argument("--validate", action="store_true", help="leave the test images alone")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    train_part, test_part = read(arguments.data, "train"), read(arguments.data, "t10k")
    # As in the files of `leo train`.
    digests = [hashlib.sha256(part[0].tobytes() + part[1].tobytes()).digest() for part in (train_part, test_part)]
    images, labels = tensors(*train_part)
    held_out = images[-VALIDATION:], labels[-VALIDATION:]
    for name in arguments.network or RECIPES:
        make, recipe = RECIPES[name]
        recipe = {**recipe, **{key: type(recipe[key])(number) for key, number in (x.split("=") for x in arguments.set)}}
        torch.manual_seed(arguments.seed)
        # A layout that processors are faster with.
        network = make().to(memory_format=torch.channels_last)
        start = time.time()

        def tell(epoch):
            right, gone = 100 * accuracy(network, *held_out), ", ".join(f"{k} of {n}" for k, n in off(network))
            seconds = time.time() - start
            print(f"{name}: epoch {epoch + 1}, {seconds:.0f} s: {right:.2f}% of those held out; off {gone}", flush=True)

        train(network, images[:-VALIDATION], labels[:-VALIDATION], recipe, 128, tell)
        result = {"validation_accuracy": accuracy(network, *held_out)}
        if not arguments.validate:
            result["test_accuracy"] = accuracy(network, *tensors(*test_part))
            print(f"{name}: {100 * result['test_accuracy']:.2f}% of the test images")
        arguments.out.mkdir(parents=True, exist_ok=True)
        recipe = {"network": name, **recipe, "batch": 128, "seed": arguments.seed, "held_out": VALIDATION}
        metadata = {"leo.recipe": recipe, "leo.result": result}
        metadata = {key: json.dumps(value, separators=(",", ":")) for key, value in metadata.items()}
        metadata["leo.data"] = hashlib.sha256(b"".join(digests)).hexdigest()
        export(network, arguments.out / f"{name}.onnx", metadata)


if __name__ == "__main__":
    main()
