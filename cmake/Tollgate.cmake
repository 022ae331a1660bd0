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
# Addresses of functions are resolved at the start and are read-only from then on.
add_link_options(-Wl,-z,relro,-z,now)
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

# Precompiled headers. Choose the smallest that suffices: none for code with the standard library alone, ASIO for code with
# coroutines or Beast, GRPC for code with gRPC. Tests get the same with GoogleTest.
function(_tollgate_pch target kind)
  if(NOT kind)
    set(kind STD)
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

# Unity builds: the compiler reads the headers of gRPC, protobuf, Asio and the standard library once for a batch of sources
# (docs/design/toolchain.md section 6 has what that saves). Two sources of one library therefore cannot have the same
# name in their anonymous namespaces. OFF: each source by itself.
option(TOLLGATE_UNITY "Compile sources of one library in batches" ON)
# Libraries are one batch, up to 40 sources. Batches of tests are smaller, so that a change of one file takes seconds.
function(_tollgate_unity target batch)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TOLLGATE_UNITY} UNITY_BUILD_BATCH_SIZE ${batch})
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
    _tollgate_unity(${target} 40)
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
  _tollgate_unity(${A_NAME} 40)
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

# `time` measures each suite, for tests/tiers/record.py: seconds, and seconds of processor time. Where Debian's package
# is missing, suites run without it.
find_program(TOLLGATE_TIME time)
file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/test-times")

# _tollgate_suite(NAME LABEL TIER SECONDS TIMEOUT ENVIRONMENT COMMAND…): an entry of ctest.
#   TIER: which command runs it (docs/design/testing.md section 1): fast (`./dev check` and `./dev test`), test
#     (`./dev test`) or all (`./dev test all`).
#   SECONDS: duration on 2 processors in parallel with other suites; ctest starts the longest first, and CI's slice
#     (tests/tiers/slice.py) adds them up.
#   PROCESSORS: the number of small suites that it counts as.
function(_tollgate_suite)
  cmake_parse_arguments(A "" "NAME;LABEL;TIER;SECONDS;TIMEOUT;PROCESSORS" "ENVIRONMENT;COMMAND;LABELS" ${ARGN})
  foreach(argument LABEL TIER)
    if(NOT A_${argument})
      message(FATAL_ERROR "suite ${A_NAME} has no ${argument}")
    endif()
  endforeach()
  if(NOT A_TIER MATCHES "^(fast|test|all)$")
    message(FATAL_ERROR "suite ${A_NAME}: TIER is fast, test or all, not ${A_TIER}")
  endif()
  set(defaults SECONDS 2 TIMEOUT 900 PROCESSORS 1)
  while(defaults)
    list(POP_FRONT defaults argument value)
    if(NOT A_${argument})
      set(A_${argument} ${value})
    endif()
  endwhile()
  set(tiers ${A_TIER})
  if(A_TIER STREQUAL "fast")
    list(APPEND tiers test)
  endif()
  set(timed)
  if(TOLLGATE_TIME)
    set(timed "${TOLLGATE_TIME}" -o "${CMAKE_BINARY_DIR}/test-times/${A_NAME}" -f "%e %U %S")
  endif()
  add_test(NAME ${A_NAME} COMMAND ${timed} ${A_COMMAND})
  set_tests_properties(${A_NAME} PROPERTIES LABELS "${A_LABEL};${tiers};${A_LABELS}" TIMEOUT ${A_TIMEOUT} COST ${A_SECONDS}
    PROCESSORS ${A_PROCESSORS} SKIP_RETURN_CODE 77 ENVIRONMENT "TOLLGATE_BIN=${CMAKE_BINARY_DIR}/bin;${A_ENVIRONMENT}")
endfunction()

# tollgate_test(NAME common_base_tests SRCS a_test.cc … DEPS … [LABEL …] [TIER …] [SECONDS s] [TIMEOUT s] [PROCESSORS n]
#               [PCH …] [ARGS …] [ENVIRONMENT …] [OWN_MAIN] [EACH_SOURCE])
# One binary per folder, with one ctest entry. EACH_SOURCE: not in batches, since its sources use the same short names.
# LABEL: unit, or database where DEPS has a server of tests/support, which TIER fast excludes.
function(tollgate_test)
  cmake_parse_arguments(A "OWN_MAIN;EACH_SOURCE" "NAME;PCH;LABEL;TIER;SECONDS;TIMEOUT;PROCESSORS" "SRCS;DEPS;ARGS;ENVIRONMENT" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  _tollgate_includes(${A_NAME})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS} GTest::gtest GTest::gmock)
  if(NOT A_OWN_MAIN)
    target_link_libraries(${A_NAME} PRIVATE GTest::gtest_main)
  endif()
  set_target_properties(${A_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  if(NOT A_EACH_SOURCE)
    set(batch 8)
    if(A_PCH STREQUAL "GRPC")
      set(batch 4)
    endif()
    _tollgate_unity(${A_NAME} ${batch})
  endif()
  # Includes GoogleTest, which otherwise takes half of the compile time of a small test.
  if(A_PCH)
    _tollgate_pch(${A_NAME} "${A_PCH}_TEST")
  else()
    _tollgate_pch(${A_NAME} TEST)
  endif()
  set(servers ${A_DEPS})
  list(FILTER servers INCLUDE REGEX "^tollgate::test_(cluster|chaos|patroni|postgres|redis)$")
  if(NOT A_LABEL AND servers)
    set(A_LABEL database)
  elseif(NOT A_LABEL)
    set(A_LABEL unit)
  endif()
  if(NOT A_TIER AND A_LABEL MATCHES "^(unit|fuzz|simulation)$")
    set(A_TIER fast)
  elseif(NOT A_TIER)
    set(A_TIER test)
  endif()
  if(A_TIER STREQUAL "fast" AND servers)
    message(FATAL_ERROR "suite ${A_NAME} starts servers: its TIER is test or all")
  endif()
  if(servers MATCHES "cluster|chaos|patroni")
    add_dependencies(${A_NAME} tollgate_programs)
  endif()
  _tollgate_suite(NAME ${A_NAME} LABEL ${A_LABEL} TIER ${A_TIER} SECONDS ${A_SECONDS} TIMEOUT ${A_TIMEOUT}
    PROCESSORS ${A_PROCESSORS} COMMAND $<TARGET_FILE:${A_NAME}> ${A_ARGS}
    ENVIRONMENT "TOLLGATE_SOURCE=${PROJECT_SOURCE_DIR};TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp;ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1;LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan.supp:print_suppressions=0;UBSAN_OPTIONS=print_stacktrace=1;${A_ENVIRONMENT}")
endfunction()

# tollgate_test_part(NAME integration_tests_streamed OF integration_tests FILTER "*Money*" [TIER …] [SECONDS s] [ENGINES streamed])
# Tests of another entry's program that the filter names, as an entry of their own. ENGINES: with engines that are always asked to
# stream (streamed), or only for answers that their callers stream (whole), whatever the size of the answer (decision 42).
function(tollgate_test_part)
  cmake_parse_arguments(A "" "NAME;OF;FILTER;TIER;SECONDS;ENGINES" "" ${ARGN})
  get_test_property(${A_OF} ENVIRONMENT environment)
  get_test_property(${A_OF} TIMEOUT timeout)
  get_test_property(${A_OF} LABELS labels)
  get_test_property(${A_OF} PROCESSORS processors)
  list(GET labels 0 label)
  if(NOT A_TIER)
    list(GET labels 1 A_TIER)
  endif()
  if(A_ENGINES)
    list(APPEND environment "TOLLGATE_ENGINE_MODE=${A_ENGINES}")
  endif()
  _tollgate_suite(NAME ${A_NAME} LABEL ${label} TIER ${A_TIER} SECONDS ${A_SECONDS} TIMEOUT ${timeout} PROCESSORS ${processors}
    COMMAND $<TARGET_FILE:${A_OF}> "--gtest_filter=${A_FILTER}" ENVIRONMENT "${environment}")
  add_custom_target(${A_NAME} DEPENDS ${A_OF})
endfunction()

# tollgate_script(NAME helm_tests COMMAND … LABEL … TIER … [NEEDS programs helm …] [READS deploy/helm …] [SECONDS s] [TIMEOUT s]
#                 [PROCESSORS n] [ENVIRONMENT …])
# A suite that is a script. Exit code 77: a requirement is missing, and the suite is skipped.
#   NEEDS: built by ./dev before: programs (of the product), targets of CMake, pages (of the dashboard), or parts (tests/parts).
#   READS: other tested files besides programs and its own folder.
function(tollgate_script)
  cmake_parse_arguments(A "" "NAME;LABEL;TIER;SECONDS;TIMEOUT;PROCESSORS" "COMMAND;NEEDS;READS;ENVIRONMENT" ${ARGN})
  set(labels)
  set(targets)
  foreach(need ${A_NEEDS})
    if(need STREQUAL "programs")
      list(APPEND targets tollgate_programs)
    elseif(need MATCHES "^tollgate-")
      list(APPEND targets ${need})
    elseif(need MATCHES "_tests$")
      list(APPEND targets ${need})
    else()
      list(APPEND labels "needs=${need}")
    endif()
  endforeach()
  foreach(path ${A_READS})
    list(APPEND labels "reads=${path}")
  endforeach()
  add_custom_target(${A_NAME})
  if(targets)
    add_dependencies(${A_NAME} ${targets})
  endif()
  _tollgate_suite(NAME ${A_NAME} LABEL ${A_LABEL} TIER ${A_TIER} SECONDS ${A_SECONDS} TIMEOUT ${A_TIMEOUT} PROCESSORS ${A_PROCESSORS}
    LABELS ${labels} COMMAND ${A_COMMAND} ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1;${A_ENVIRONMENT}")
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

# Generated code: all files of an area at once, with little optimization, without warnings. protoc gives variables of each file the
# same names.
function(_tollgate_generated target)
  target_compile_options(${target} PRIVATE -w $<$<CONFIG:Release>:-O1>)
  _tollgate_includes(${target})
  _tollgate_pch(${target} PROTO)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TOLLGATE_UNITY} UNITY_BUILD_BATCH_SIZE 0 UNITY_BUILD_UNIQUE_ID TOLLGATE_FILE UNITY_BUILD_CODE_BEFORE_INCLUDE
"#define TOLLGATE_JOIN_(a, b) a##b
#define TOLLGATE_JOIN(a, b) TOLLGATE_JOIN_(a, b)
#define file_default_instances TOLLGATE_JOIN(file_default_instances_, TOLLGATE_FILE)
#define schemas TOLLGATE_JOIN(schemas_, TOLLGATE_FILE)")
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
  _tollgate_generated(${target})
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf ${A_DEPS})
  add_library(tollgate::proto_${A_AREA} ALIAS ${target})
  if(A_GRPC)
    set(target tollgate_grpc_${A_AREA})
    add_library(${target} STATIC ${services})
    _tollgate_generated(${target})
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
