"""Compares the messages that Leo knows with those that the package onnx declares.

Usage: schema.py LISTING

LISTING is what leo_formats::onnx::wire::listing says: "message NAME", then for each field a line with its number, name,
type, "repeated" or "single", the message inside, and the last of its values if it is an enum. Prints a line for each
difference, and exits with 1 if there is one. An older package need not know all fields; a newer one shows what Leo has
yet to learn.
"""

import sys

import onnx
from google.protobuf.descriptor import FieldDescriptor as Field

KINDS = {
    Field.TYPE_INT32: "int32",
    Field.TYPE_INT64: "int64",
    Field.TYPE_UINT64: "uint64",
    Field.TYPE_FLOAT: "float",
    Field.TYPE_DOUBLE: "double",
    Field.TYPE_STRING: "string",
    Field.TYPE_BYTES: "bytes",
    Field.TYPE_MESSAGE: "message",
    Field.TYPE_ENUM: "int32",
}
# Plain numbers on the wire, which stand for types of elements.
ELEMENT_TYPES = {
    "onnx.TensorProto.data_type",
    "onnx.TypeProto.Tensor.elem_type",
    "onnx.TypeProto.SparseTensor.elem_type",
    "onnx.TypeProto.Map.key_type",
}

listed = {}
for line in open(sys.argv[1], encoding="utf-8").read().splitlines():
    words = line.split(" ")
    if words[0] == "message":
        fields = listed.setdefault(words[1], {})
    else:
        fields[int(words[0])] = words[1:]


def repeated(field):
    return field.is_repeated if hasattr(field, "is_repeated") else field.label == Field.LABEL_REPEATED


def values(field):
    if field.full_name in ELEMENT_TYPES:
        return onnx.TensorProto.DataType.values()
    return field.enum_type and [value.number for value in field.enum_type.values]


def differences(name, message, met):
    if name in met:
        if met[name] != message.full_name:
            yield f"{name} stands for {met[name]} and for {message.full_name}"
        return
    met[name] = message.full_name
    for field in message.fields:
        if field.number not in listed[name]:
            yield f"{field.full_name} ({field.number}) is unknown to Leo"
            continue
        own, kind, many, inside, last = listed[name][field.number]
        # Leo calls members of a choice by names of its own.
        if own != field.name and not field.containing_oneof:
            yield f"{field.full_name} is called {own}"
        if kind != KINDS[field.type] or many != ("repeated" if repeated(field) else "single"):
            yield f"{field.full_name} is {many} {kind}"
        found = sorted(values(field) or [])
        if found != list(range(len(found))) or (last != "-") != bool(found) or (found and found[-1] > int(last)):
            yield f"{field.full_name} has the values {found}, and Leo knows up to {last}"
        if field.message_type:
            yield from differences(inside, field.message_type, met)


found = list(differences("ModelProto", onnx.ModelProto.DESCRIPTOR, {}))
print("\n".join(found))
sys.exit(bool(found))
