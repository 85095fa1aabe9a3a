# The wheel's content (component "python"): the extension in rknn/, the native command line in rknn/bin, librknnrt.so in rknn/lib, the
# C headers in rknn/include.
if(ORKNN_PYTHON)
  find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
  find_package(nanobind CONFIG REQUIRED)
  nanobind_add_module(_openrknn NB_STATIC LTO NOMINSIZE python/src/module.cpp python/src/model_tools.cpp python/src/devices.cpp)
  target_link_libraries(_openrknn PRIVATE orknn_toolkit)
  install(TARGETS _openrknn LIBRARY DESTINATION . COMPONENT python)
  install(TARGETS openrknn rknn_server RUNTIME DESTINATION bin COMPONENT python)
  install(TARGETS rknnrt LIBRARY DESTINATION lib COMPONENT python)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION include COMPONENT python)
endif()
