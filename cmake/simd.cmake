# The compute cores exist once per instruction set; each form's file has its own flags (src/sim/README.md).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # gcc 12 warns about the undefined operands inside its own AVX-512 header.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(quiet "-Wno-maybe-uninitialized -Wno-uninitialized")
  endif()
  set(level -O3)
  if(ORKNN_SANITIZE)
    set(level -O1)  # the sanitizers' checks make -O3 take many minutes
  endif()
  set(forms ${PROJECT_SOURCE_DIR}/src/sim/kernels/support)
  set_source_files_properties(${forms}/forms_avx2.cpp PROPERTIES COMPILE_FLAGS "${level} -mavx2 -mfma -mf16c")
  set_source_files_properties(${forms}/forms_avx512.cpp PROPERTIES
                              COMPILE_FLAGS "${level} -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512 ${quiet}")
  set_source_files_properties(${forms}/int_forms_avx2.cpp PROPERTIES COMPILE_FLAGS "${level} -mavx2")
  file(GLOB form_files ${forms}/*forms_*.cpp)  # other flags than the room's precompiled headers
  set_source_files_properties(${form_files} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  set(avx512 "${level} -mavx2 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512 ${quiet}")
  set_source_files_properties(${forms}/int_forms_avx512.cpp PROPERTIES COMPILE_FLAGS "${avx512}")
  set_source_files_properties(${forms}/int_forms_avx512vnni.cpp PROPERTIES COMPILE_FLAGS "${avx512} -mavx512vnni")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(forms ${PROJECT_SOURCE_DIR}/src/sim/kernels/support)
  file(GLOB form_files ${forms}/*forms_*.cpp)
  set_source_files_properties(${form_files} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  # gcc's first scheduling moves loads so far up that the sums of a tile no longer fit the registers.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(in_order -fno-schedule-insns)
  endif()
  set_source_files_properties(${forms}/forms_neon.cpp PROPERTIES COMPILE_FLAGS "-O3 ${in_order}")
  set_source_files_properties(${forms}/int_forms_neon.cpp PROPERTIES COMPILE_FLAGS "-O3 ${in_order}")
  set_source_files_properties(${forms}/int_forms_dotprod.cpp PROPERTIES COMPILE_FLAGS "-O3 ${in_order} -march=armv8.2-a+dotprod")
  set_source_files_properties(${forms}/int_forms_i8mm.cpp PROPERTIES COMPILE_FLAGS "-O3 ${in_order} -march=armv8.2-a+i8mm")
endif()
