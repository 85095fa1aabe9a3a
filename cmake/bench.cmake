# Benchmarks of single kernels: orknn_bench, with Google Benchmark's own options (--benchmark_filter=conv/resnet50).
if(ORKNN_BENCH)
  find_package(benchmark REQUIRED)
  add_executable(orknn_bench ${PROJECT_SOURCE_DIR}/bench/kernels.cpp ${PROJECT_SOURCE_DIR}/bench/peak.cpp
                 ${PROJECT_SOURCE_DIR}/tests/cpp/op_case.cpp ${PROJECT_SOURCE_DIR}/tests/cpp/test_paths.cpp)
  target_include_directories(orknn_bench PRIVATE ${PROJECT_SOURCE_DIR}/tests/cpp)
  target_link_libraries(orknn_bench PRIVATE orknn_compile orknn_sim benchmark::benchmark orknn_options)
  target_compile_definitions(orknn_bench PRIVATE ORKNN_SHAPES_DIR="${PROJECT_SOURCE_DIR}/bench/shapes")
endif()
