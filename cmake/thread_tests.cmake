# For builds of the runtime alone under a sanitizer (`make test-threads`): rknn_server, and one program of the tests that start threads, fork,
# connect or share memory, and need nothing above the server.
include(cmake/rknn_server.cmake)
if(ORKNN_SANITIZE MATCHES address)
  target_compile_options(orknn_ops PRIVATE -fno-sanitize=all)  # the reference kernels, half of the build: `make test-sanitized` has them
endif()
find_package(GTest REQUIRED)
file(GLOB room_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/base/*_test.cpp ${PROJECT_SOURCE_DIR}/src/remote/*_test.cpp
     ${PROJECT_SOURCE_DIR}/src/server/*_test.cpp)
list(TRANSFORM room_tests REPLACE "^.*/src/" "src/")
add_executable(orknn_thread_tests ${room_tests} src/runtime/context_test.cpp src/runtime/session_test.cpp src/sim/matrix_product_test.cpp
               tests/cpp/capi_checker_test.cpp tests/cpp/capi_contexts_test.cpp tests/cpp/capi_matmul_test.cpp tests/cpp/capi_memory_test.cpp
               src/sim/executor_test.cpp tests/cpp/failing_allocation.cpp tests/cpp/format_sample.cpp tests/cpp/test_paths.cpp)
target_link_libraries(orknn_thread_tests PRIVATE orknn_server orknn_runtime GTest::gtest_main orknn_options)
target_include_directories(orknn_thread_tests PRIVATE tests/cpp)
orknn_precompile(orknn_thread_tests gtest/gtest.h)
add_dependencies(orknn_thread_tests capi_matmul)
