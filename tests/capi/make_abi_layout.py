"""Writes abi_layout.c from a machine-readable description of the C ABI (sizes, offsets, values, function names; 64 bits) and the
tables of the interface reference, which have a column of offsets for 32-bit ARM.

make_abi_layout.py abi.json c-api.md > abi_layout.c
"""

import json
import re
import sys


def arm32_layout(reference):
    """(sizes by struct, offsets by "struct.field") of 32-bit ARM from the reference's tables."""
    sizes, offsets, struct = {}, {}, None
    for line in reference.splitlines():
        if heading := re.match(r"#### `(\w+)` .*, (\d+) \(ARM32\)", line):
            struct = heading.group(1)
            sizes[struct] = int(heading.group(2))
        elif line.startswith("#"):
            struct = None
        elif struct and (row := re.match(r"\| \d+ \| (\d+) \| `(\w+)` \|", line)):
            offsets[f"{struct}.{row.group(2)}"] = int(row.group(1))
    return sizes, offsets


def print_layout(sizes, offsets):
    for struct, size in sizes.items():
        print(f"CHECK(size_of_{struct}, sizeof({struct}) == {size});")
    for field, offset in offsets.items():
        struct, member = field.split(".")
        print(f"CHECK(offset_of_{struct}_{member}, offsetof({struct}, {member}) == {offset});")


def main():
    abi = json.load(open(sys.argv[1]))
    sizes, offsets = arm32_layout(open(sys.argv[2]).read())
    if sizes.keys() != abi["sizeof"].keys() or offsets.keys() != abi["offsetof"].keys():
        sys.exit("the two descriptions name different structs or fields")
    print(
        "/* Made by make_abi_layout.py: fails to compile when a header differs from the published ABI, and to link when a function is"
    )
    print(" * missing. */")
    print("#include <stddef.h>\n#include <stdio.h>\n")
    print('#include "rknn_api.h"\n#include "rknn_custom_op.h"\n#include "rknn_matmul_api.h"\n')
    print("#define CHECK(name, condition) typedef char name[(condition) ? 1 : -1]\n")
    print("#if defined(__arm__)")
    print("CHECK(size_of_rknn_context, sizeof(rknn_context) == 4 && sizeof(rknn_matmul_ctx) == 4);")
    print_layout(sizes, offsets)
    print("#else")
    print("CHECK(size_of_rknn_context, sizeof(rknn_context) == 8 && sizeof(rknn_matmul_ctx) == 8);")
    print_layout(abi["sizeof"], abi["offsetof"])
    print("#endif")
    for kind in ("enum", "define"):
        for name, value in abi[kind].items():
            print(f"CHECK(value_of_{name}, (long long)({name}) == {value}LL);")
    print("CHECK(size_of_enums, sizeof(rknn_query_cmd) == 4 && sizeof(rknn_tensor_type) == 4 && sizeof(rknn_matmul_type) == 4);")
    print("\ntypedef void (*any_function)(void);\n")
    print("static const struct {\n  const char* name;\n  any_function function;\n} functions[] = {")
    for name in abi["functions"]:
        print(f'    {{"{name}", (any_function){name}}},')
    print("};\n\nint main(void) {")
    print("  size_t i, missing = 0, count = sizeof functions / sizeof functions[0];")
    print(
        '  for (i = 0; i < count; ++i)\n    if (!functions[i].function) {\n      printf("%s is missing\\n", functions[i].name);\n      ++missing;\n    }'
    )
    print('  printf("%lu functions\\n", (unsigned long)(count - missing));')
    print("  return missing != 0;\n}")


main()
