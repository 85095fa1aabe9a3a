"""Writes abi_layout.c from a machine-readable description of the C ABI (sizes, offsets, values, function names).

make_abi_layout.py abi.json > abi_layout.c
"""

import json
import sys


def main():
    abi = json.load(open(sys.argv[1]))
    print(
        "/* Made by make_abi_layout.py: fails to compile when a header differs from the published ABI (64-bit), and to link when a"
    )
    print(" * function is missing. */")
    print("#include <stddef.h>\n#include <stdio.h>\n")
    print('#include "rknn_api.h"\n#include "rknn_custom_op.h"\n#include "rknn_matmul_api.h"\n')
    print("#define CHECK(name, condition) typedef char name[(condition) ? 1 : -1]\n")
    for struct, size in abi["sizeof"].items():
        print(f"CHECK(size_of_{struct}, sizeof({struct}) == {size});")
    for field, offset in abi["offsetof"].items():
        struct, member = field.split(".")
        print(f"CHECK(offset_of_{struct}_{member}, offsetof({struct}, {member}) == {offset});")
    for kind in ("enum", "define"):
        for name, value in abi[kind].items():
            print(f"CHECK(value_of_{name}, (long)({name}) == {value}L);")
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
