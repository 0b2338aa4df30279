"""Steps a second of a plain PyTorch loop, for the table in PERFORMANCE.md.

Usage, in an environment with torch and numpy:  python pytorch.py FOLDER-OF-MNIST [WIDTH ...]

The same recipe as `leo train`. The whole training set lies in memory as one tensor, and a batch is taken from it by its
indices: no loader, no transforms, nothing but the steps.
"""

import gzip
import pathlib
import sys
import time

import numpy
import torch


def load(folder, name):
    packed = pathlib.Path(folder, name + ".gz")
    content = gzip.open(packed).read() if packed.exists() else pathlib.Path(folder, name).read_bytes()
    return numpy.frombuffer(content, numpy.uint8, offset=4 + 4 * content[3])


def steps_per_second(images, labels, width, l1, steps):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(784, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, width),
        torch.nn.ReLU(),
        torch.nn.Linear(width, 10),
    )
    weights = [parameter for parameter in model.parameters() if parameter.dim() == 2]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    order = torch.randperm(len(images))

    def run(count):
        for step in range(count):
            batch = order[64 * step % 59_904 :][:64]
            loss = loss_of(model(images[batch]), labels[batch])
            if l1:
                loss = loss + l1 * sum(weight.abs().sum() for weight in weights)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    run(100)
    start = time.perf_counter()
    run(steps)
    return steps / (time.perf_counter() - start)


def main():
    folder, widths = sys.argv[1], [int(width) for width in sys.argv[2:]] or [100]
    torch.set_num_threads(1)
    images = torch.from_numpy(load(folder, "train-images-idx3-ubyte").astype(numpy.float32).reshape(-1, 784) / 255)
    labels = torch.from_numpy(load(folder, "train-labels-idx1-ubyte").astype(numpy.int64))
    for width in widths:
        for l1 in (0.0, 1e-4):
            best = max(steps_per_second(images, labels, width, l1, 2000) for _ in range(3))
            print(f"torch {torch.__version__}, one thread, 784-{width}-{width}-10, l1 {l1}: {best:.0f} steps/s")


if __name__ == "__main__":
    main()
