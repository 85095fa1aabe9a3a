# Command line programs.
find_package(CLI11 REQUIRED)
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/openrknn/*.cpp)
add_executable(openrknn ${sources})
target_link_libraries(openrknn PRIVATE orknn_toolkit CLI11::CLI11 fmt::fmt-header-only nlohmann_json::nlohmann_json orknn_options)
target_compile_options(openrknn PRIVATE $<$<CONFIG:Release>:-O1>)  # it hands its work to the library
set_target_properties(openrknn PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)  # one unit: the headers cost more than the commands
# `openrknn --includedir` looks beside the program when it is not installed.
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include SYMBOLIC)

# Completion scripts and manual pages, printed by the program that they describe, and part of the wheel: share/ of the environment.
if(NOT CMAKE_CROSSCOMPILING)
  set(share ${PROJECT_BINARY_DIR}/share)
  set(bash_script ${share}/bash-completion/completions/openrknn)
  set(zsh_script ${share}/zsh/site-functions/_openrknn)
  set(fish_script ${share}/fish/vendor_completions.d/openrknn.fish)
  set(man_pages ${share}/man/man1)
  foreach(script ${bash_script} ${zsh_script} ${fish_script})
    get_filename_component(folder ${script} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
  endforeach()
  add_custom_command(
    OUTPUT ${bash_script} ${zsh_script} ${fish_script} ${man_pages}/openrknn.1
    COMMAND openrknn completion bash -o ${bash_script}
    COMMAND openrknn completion zsh -o ${zsh_script}
    COMMAND openrknn completion fish -o ${fish_script}
    COMMAND openrknn man -o ${man_pages}
    DEPENDS openrknn)
  add_custom_target(openrknn_share ALL DEPENDS ${bash_script} ${man_pages}/openrknn.1)
  set(share_destination share)
  if(SKBUILD_DATA_DIR)
    set(share_destination ${SKBUILD_DATA_DIR}/share)
  endif()
  install(DIRECTORY ${share}/ DESTINATION ${share_destination} COMPONENT python)
endif()

include(cmake/rknn_server.cmake)
