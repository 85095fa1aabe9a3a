# The server of simulated and real boards.
find_package(CLI11 REQUIRED)
add_executable(rknn_server ${PROJECT_SOURCE_DIR}/tools/rknn_server/main.cpp)
target_link_libraries(rknn_server PRIVATE orknn_server CLI11::CLI11 orknn_options)
target_compile_definitions(rknn_server PRIVATE ORKNN_VERSION="${PROJECT_VERSION}")
target_compile_options(rknn_server PRIVATE $<$<CONFIG:Release>:-O1>)
install(TARGETS rknn_server RUNTIME DESTINATION bin COMPONENT server)
install(FILES ${PROJECT_SOURCE_DIR}/tools/rknn_server/rknn_server.service DESTINATION lib/systemd/system COMPONENT server)
