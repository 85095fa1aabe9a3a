# What the toolchain files share: the compilers of `triplet`; libraries and headers come from its own tree, programs from this machine.
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)
set(CMAKE_FIND_ROOT_PATH /usr/${triplet})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# gcc notes on 32-bit ARM that releases before 7.1 pass some arguments differently.
set(CMAKE_CXX_FLAGS_INIT -Wno-psabi)
