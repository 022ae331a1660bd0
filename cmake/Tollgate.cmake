# The build functions: tollgate_library, tollgate_binary, tollgate_test, tollgate_fuzz, tollgate_proto,
# tollgate_folders, tollgate_protos_in, tollgate_link_protos.
# Each target is one call of one of them; compile and link settings are only in this file.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Protobuf REQUIRED)        # module mode: Debian ships no protobuf CMake package
find_package(gRPC CONFIG REQUIRED)
# Debian's RE2, which gRPC depends on, requires -pthread at compile time. If only some targets had it, the
# precompiled headers could not be shared.
set_property(TARGET re2::re2 PROPERTY INTERFACE_COMPILE_OPTIONS "")
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(yaml-cpp CONFIG REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(PostgreSQL REQUIRED)
find_package(CURL REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(BROTLI REQUIRED IMPORTED_TARGET libbrotlidec)
pkg_check_modules(BROTLI_ENCODER REQUIRED IMPORTED_TARGET libbrotlienc)  # for tests
find_library(TOLLGATE_JEMALLOC libjemalloc_pic.a REQUIRED)
find_library(TOLLGATE_NCURSES libncursesw.a REQUIRED)
find_library(TOLLGATE_TINFO libtinfo.a REQUIRED)
find_package(GTest CONFIG REQUIRED)
find_package(Boost 1.81 REQUIRED)

find_program(TOLLGATE_CCACHE ccache)
if(TOLLGATE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/compile" "${PROJECT_SOURCE_DIR}" "${TOLLGATE_CCACHE}")
endif()

# Asio and Beast are compiled once, in common/runtime/asio_impl.cc. All targets have the same definitions,
# so that they can share the precompiled headers.
add_compile_definitions(BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION
                        BOOST_ASIO_NO_DEPRECATED BOOST_ERROR_CODE_HEADER_ONLY _GLIBCXX_ASSERTIONS
                        TOLLGATE_VERSION="${PROJECT_VERSION}")
add_compile_options(-Wall -Wextra -Wpedantic -Wno-unused-parameter -Wno-missing-field-initializers
                    -fstack-protector-strong)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # -Wpedantic of Clang warns about variadic macros without arguments, which library headers use.
  add_compile_options(-Wno-gnu-zero-variadic-macro-arguments)
  add_link_options(-fuse-ld=lld)
endif()
option(TOLLGATE_WERROR "Treat warnings as errors" ON)
if(TOLLGATE_WERROR)
  add_compile_options(-Werror)
endif()
set(TOLLGATE_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=")
if(TOLLGATE_SANITIZE)
  add_compile_options(-fsanitize=${TOLLGATE_SANITIZE} -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TOLLGATE_SANITIZE})
endif()

# Precompiled headers. Choose the smallest that suffices: NONE for pure domain code, ASIO for code with
# coroutines or Beast, GRPC for code with gRPC. Tests get the same with GoogleTest.
function(_tollgate_pch target kind)
  if(NOT kind OR kind STREQUAL "NONE")
    return()
  endif()
  string(TOLOWER ${kind} lower)
  target_precompile_headers(${target} REUSE_FROM tollgate_pch_${lower})
  # CMake compiles executables with -fPIE, which is incompatible with a header precompiled with -fPIC.
  target_compile_options(${target} PRIVATE -fPIC)
endfunction()

function(_tollgate_includes target)
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_include_directories(${target} SYSTEM PUBLIC ${Boost_INCLUDE_DIRS})
endfunction()

# tollgate_library(NAME common_base SRCS a.cc … DEPS tollgate::x … [PCH ASIO|GRPC])
# Defines the target tollgate_<NAME> and its alias tollgate::<NAME>. Headers are not listed.
function(tollgate_library)
  cmake_parse_arguments(A "" "NAME;PCH" "SRCS;DEPS" ${ARGN})
  set(target tollgate_${A_NAME})
  if(A_SRCS)
    add_library(${target} STATIC ${A_SRCS})
    _tollgate_includes(${target})
    target_link_libraries(${target} PUBLIC ${A_DEPS})
    _tollgate_pch(${target} "${A_PCH}")
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${target} INTERFACE ${A_DEPS})
  endif()
  add_library(tollgate::${A_NAME} ALIAS ${target})
endfunction()

# tollgate_allocator(TARGET): links jemalloc, which takes a tenth less CPU per request than the C library's allocator
# (docs/performance.md), with its settings. Static: the image needs no package. Sanitizers have their own allocators.
function(tollgate_allocator target)
  if(NOT TOLLGATE_SANITIZE)
    target_sources(${target} PRIVATE "${PROJECT_SOURCE_DIR}/common/host/allocator.cc")
    target_link_libraries(${target} PRIVATE "${TOLLGATE_JEMALLOC}")
  endif()
endfunction()

# tollgate_binary(NAME tollgate-gateway SRCS main.cc DEPS … [PCH …]): an executable in <build>/bin.
function(tollgate_binary)
  cmake_parse_arguments(A "" "NAME;PCH" "SRCS;DEPS" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  _tollgate_includes(${A_NAME})
  tollgate_allocator(${A_NAME})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS})
  set_target_properties(${A_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
  _tollgate_pch(${A_NAME} "${A_PCH}")
endfunction()

# tollgate_folders(SOURCES TESTS): globs the sources and the tests of all subfolders, for places where a new
# folder should not need a change of the build.
function(tollgate_folders sources_var tests_var)
  file(GLOB sources RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" CONFIGURE_DEPENDS */*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(REMOVE_ITEM sources ${tests})
  set(${sources_var} ${sources} PARENT_SCOPE)
  set(${tests_var} ${tests} PARENT_SCOPE)
endfunction()

# tollgate_test(NAME common_base_tests SRCS a_test.cc … DEPS … [LABEL unit] [PCH …] [TIMEOUT s] [ARGS …] [OWN_MAIN])
# One binary per folder, with one ctest entry.
function(tollgate_test)
  cmake_parse_arguments(A "OWN_MAIN" "NAME;PCH;LABEL;TIMEOUT" "SRCS;DEPS;ARGS" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  _tollgate_includes(${A_NAME})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS} GTest::gtest GTest::gmock)
  if(NOT A_OWN_MAIN)
    target_link_libraries(${A_NAME} PRIVATE GTest::gtest_main)
  endif()
  set_target_properties(${A_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  # With GoogleTest, which takes half of the time of a small test otherwise.
  if(A_PCH)
    _tollgate_pch(${A_NAME} "${A_PCH}_TEST")
  else()
    _tollgate_pch(${A_NAME} TEST)
  endif()
  if(NOT A_LABEL)
    set(A_LABEL unit)
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 120)
  endif()
  add_test(NAME ${A_NAME} COMMAND ${A_NAME} ${A_ARGS})
  set_tests_properties(${A_NAME} PROPERTIES LABELS "${A_LABEL}" TIMEOUT ${A_TIMEOUT}
    ENVIRONMENT "TOLLGATE_BIN=${CMAKE_BINARY_DIR}/bin;TOLLGATE_SOURCE=${PROJECT_SOURCE_DIR};TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp;ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1;LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan.supp:print_suppressions=0;UBSAN_OPTIONS=print_stacktrace=1")
endfunction()

# tollgate_tests_in_mode(integration_tests streamed "*Money*"): the tests of another entry that the filter names once more,
# as <NAME>_<mode>, with engines that are always asked to stream (streamed), or only for answers that their callers stream
# (whole), whatever the size of the answer (decision 42).
function(tollgate_tests_in_mode name mode filter)
  get_test_property(${name} ENVIRONMENT environment)
  get_test_property(${name} TIMEOUT timeout)
  get_test_property(${name} LABELS labels)
  add_test(NAME ${name}_${mode} COMMAND ${name} "--gtest_filter=${filter}")
  set_tests_properties(${name}_${mode} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout}
    ENVIRONMENT "${environment};TOLLGATE_ENGINE_MODE=${mode}")
endfunction()

# tollgate_fuzz(NAME json DEPS … UNDER_TEST common/json/parser.cc …), from <NAME>_fuzz.cc and corpus/<NAME>:
# the test fuzz_<NAME>_tests, and with Clang and AddressSanitizer also the libFuzzer binary fuzz_<NAME>.
function(tollgate_fuzz)
  cmake_parse_arguments(A "" "NAME" "DEPS;UNDER_TEST" ${ARGN})
  tollgate_test(NAME fuzz_${A_NAME}_tests SRCS ${A_NAME}_fuzz.cc replay_main.cc DEPS ${A_DEPS} LABEL fuzz OWN_MAIN
    ARGS "${CMAKE_CURRENT_SOURCE_DIR}/corpus/${A_NAME}")
  if(TOLLGATE_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    list(TRANSFORM A_UNDER_TEST PREPEND "${PROJECT_SOURCE_DIR}/")
    add_executable(fuzz_${A_NAME} ${A_NAME}_fuzz.cc ${A_UNDER_TEST})
    _tollgate_includes(fuzz_${A_NAME})
    target_compile_options(fuzz_${A_NAME} PRIVATE -fsanitize=fuzzer)
    target_link_options(fuzz_${A_NAME} PRIVATE -fsanitize=fuzzer)
    target_link_libraries(fuzz_${A_NAME} PRIVATE ${A_DEPS})
    set_target_properties(fuzz_${A_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  endif()
endfunction()

# tollgate_protos_in(VAR tollgate/admin/v1): the protos of a folder below proto/, for tollgate_proto.
function(tollgate_protos_in files_var folder)
  file(GLOB files RELATIVE "${PROJECT_SOURCE_DIR}/proto" CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/proto/${folder}/*.proto")
  set(${files_var} ${files} PARENT_SCOPE)
endfunction()

# tollgate_proto(AREA billing FILES tollgate/billing/v1/x.proto … DEPS tollgate::proto_common [GRPC] [ROOT proto])
# Defines tollgate::proto_<area> (messages) and, with GRPC, tollgate::grpc_<area> (service stubs).
function(tollgate_proto)
  cmake_parse_arguments(A "GRPC" "AREA;ROOT" "FILES;DEPS" ${ARGN})
  if(NOT A_ROOT)
    set(A_ROOT proto)
  endif()
  set(out "${CMAKE_BINARY_DIR}/gen")
  set(messages)
  set(services)
  foreach(file ${A_FILES})
    string(REGEX REPLACE "\\.proto$" "" stem ${file})
    set(outputs "${out}/${stem}.pb.cc" "${out}/${stem}.pb.h")
    set(plugin)
    if(A_GRPC)
      list(APPEND outputs "${out}/${stem}.grpc.pb.cc" "${out}/${stem}.grpc.pb.h")
      set(plugin --grpc_out=${out} --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>)
      list(APPEND services "${out}/${stem}.grpc.pb.cc")
    endif()
    list(APPEND messages "${out}/${stem}.pb.cc")
    add_custom_command(
      OUTPUT ${outputs}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${out}
      COMMAND protobuf::protoc -I "${PROJECT_SOURCE_DIR}/${A_ROOT}" -I "${PROJECT_SOURCE_DIR}/proto"
              --cpp_out=${out} ${plugin} ${file}
      DEPENDS "${PROJECT_SOURCE_DIR}/${A_ROOT}/${file}"
      COMMENT "protoc ${file}" VERBATIM)
  endforeach()
  set(target tollgate_proto_${A_AREA})
  add_library(${target} STATIC ${messages})
  target_include_directories(${target} SYSTEM PUBLIC ${out})
  target_compile_options(${target} PRIVATE -w)
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf ${A_DEPS})
  add_library(tollgate::proto_${A_AREA} ALIAS ${target})
  if(A_GRPC)
    set(target tollgate_grpc_${A_AREA})
    add_library(${target} STATIC ${services})
    target_compile_options(${target} PRIVATE -w)
    target_link_libraries(${target} PUBLIC tollgate_proto_${A_AREA} gRPC::grpc++)
    add_library(tollgate::grpc_${A_AREA} ALIAS ${target})
  endif()
endfunction()

# tollgate_link_protos(AREA admin FILES tollgate/admin/v1/x.proto …): programs that link the area have the descriptors
# of these files, also where no code names them.
function(tollgate_link_protos)
  cmake_parse_arguments(A "" "AREA" "FILES" ${ARGN})
  foreach(file ${A_FILES})
    string(REPLACE "_" "_5f" symbol ${file})
    string(REPLACE "/" "_2f" symbol ${symbol})
    string(REPLACE "." "_2e" symbol ${symbol})
    target_link_options(tollgate_proto_${A_AREA} INTERFACE "LINKER:--undefined=descriptor_table_${symbol}")
  endforeach()
endfunction()
