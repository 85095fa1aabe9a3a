# One libFuzzer program per file in tests/fuzz (clang; see tests/fuzz/README.md). They link what reads and runs files, so that building the
# target `fuzz` leaves out the rest of the tree.
if(ORKNN_FUZZ)
  add_custom_target(fuzz)
  file(GLOB programs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/*.cpp)
  foreach(program ${programs})
    get_filename_component(stem ${program} NAME_WE)
    add_executable(${stem} ${program})
    target_link_libraries(${stem} PRIVATE orknn_import orknn_data orknn_sim orknn_options)
    target_link_options(${stem} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzz ${stem})
  endforeach()
endif()
