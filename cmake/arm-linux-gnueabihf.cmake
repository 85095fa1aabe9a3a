# Debian's cross compiler for 32-bit ARM boards with hardware floating point.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(triplet arm-linux-gnueabihf)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-arm -L /usr/${triplet})
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
