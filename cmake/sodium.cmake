# libsodium's header, for encrypted models; the library itself is loaded when one is opened. Cross builds of the runtime do without it
# where it is missing, and refuse such models.
find_path(SODIUM_INCLUDE sodium.h)
if(SODIUM_INCLUDE)
  target_include_directories(orknn_format SYSTEM PRIVATE ${SODIUM_INCLUDE})
  target_compile_definitions(orknn_format PRIVATE ORKNN_SODIUM)
elseif(NOT ORKNN_RUNTIME_ONLY)
  message(FATAL_ERROR "sodium.h is missing (Debian: libsodium-dev)")
endif()
