# Command line programs.
find_package(CLI11 REQUIRED)
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/openrknn/*.cpp)
add_executable(openrknn ${sources})
target_link_libraries(openrknn PRIVATE orknn_toolkit CLI11::CLI11 fmt::fmt-header-only nlohmann_json::nlohmann_json orknn_options)
target_compile_options(openrknn PRIVATE $<$<CONFIG:Release>:-O1>)  # it hands its work to the library
set_target_properties(openrknn PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)  # one unit: the headers cost more than the commands
# `openrknn --includedir` looks beside the program when it is not installed.
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include SYMBOLIC)
