# librknnrt: the runtime room and what it needs, nothing visible but the C API. librknnmrt, the library of the small chips, is the same
# code with another identity, which refuses what is not part of the zero-copy API. Both exist as shared and as static libraries; pkg-config
# (rknnrt, rknnmrt) and CMake (find_package(openrknn)) find what is installed. Also the C programs that test them.
include(CMakePackageConfigHelpers)
set(runtime_rooms sim silicon remote format ops platform ir base)

add_library(orknn_zero_copy_identity OBJECT ${PROJECT_SOURCE_DIR}/src/runtime/library_identity.cpp)
target_include_directories(orknn_zero_copy_identity PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(orknn_zero_copy_identity PRIVATE ORKNN_ZERO_COPY_ONLY)
target_link_libraries(orknn_zero_copy_identity PRIVATE orknn_options)

# orknn_c_library(name objects): targets <name> and <name>_static, their pkg-config file and their place in the installed package.
function(orknn_c_library name objects)
  set(map ${PROJECT_SOURCE_DIR}/src/runtime/librknnrt.map)
  add_library(${name} SHARED ${objects})
  list(TRANSFORM runtime_rooms PREPEND orknn_ OUTPUT_VARIABLE libraries)
  target_link_libraries(${name} PRIVATE ${libraries} orknn_options ${CMAKE_DL_LIBS})
  target_link_options(${name} PRIVATE -Wl,--version-script=${map} -Wl,--gc-sections -Wl,--as-needed)
  # The name in programs has no version, as on boards.
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX LINK_DEPENDS ${map})

  add_library(${name}_static STATIC ${objects})
  foreach(room ${runtime_rooms})
    target_sources(${name}_static PRIVATE $<TARGET_OBJECTS:orknn_${room}>)
  endforeach()
  set_target_properties(${name}_static PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE CXX)
  target_link_libraries(${name}_static PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m)
  foreach(target ${name} ${name}_static)
    target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  endforeach()

  set(RKNN_LIBRARY ${name})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/rknnrt.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION lib/pkgconfig COMPONENT runtime)
  install(TARGETS ${name} ${name}_static EXPORT openrknn LIBRARY DESTINATION lib COMPONENT runtime ARCHIVE DESTINATION lib COMPONENT runtime)
endfunction()

orknn_c_library(rknnrt $<TARGET_OBJECTS:orknn_runtime>)
orknn_c_library(rknnmrt "$<FILTER:$<TARGET_OBJECTS:orknn_runtime>,EXCLUDE,library_identity>;$<TARGET_OBJECTS:orknn_zero_copy_identity>")
target_link_options(rknnmrt PRIVATE -Wl,-s)  # boards of these chips have little memory: no names but those of the API

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION include COMPONENT runtime)
install(EXPORT openrknn NAMESPACE openrknn:: FILE openrknn-targets.cmake DESTINATION lib/cmake/openrknn COMPONENT runtime)
configure_file(${PROJECT_SOURCE_DIR}/cmake/openrknn-config.cmake.in ${PROJECT_BINARY_DIR}/openrknn-config.cmake @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/openrknn-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/openrknn-config.cmake ${PROJECT_BINARY_DIR}/openrknn-config-version.cmake
        DESTINATION lib/cmake/openrknn COMPONENT runtime)

if(ORKNN_TESTS)
  enable_testing()
  file(GLOB programs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/capi/*.c)
  foreach(program ${programs})
    get_filename_component(stem ${program} NAME_WE)
    add_executable(capi_${stem} ${program})
    set_target_properties(capi_${stem} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
    target_compile_options(capi_${stem} PRIVATE -Wall -Wextra -pedantic)
    target_link_libraries(capi_${stem} PRIVATE rknnrt Threads::Threads)
  endforeach()
endif()
