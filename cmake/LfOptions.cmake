# Language, warnings and code-generation flags of every target of the project.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Artifacts find each other by place, so that a build folder or a bundle can be moved.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_SKIP_INSTALL_RPATH OFF)

find_package(Threads REQUIRED)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)

add_library(lf_options INTERFACE)
target_compile_definitions(lf_options INTERFACE _GNU_SOURCE)
target_include_directories(lf_options INTERFACE
  ${PROJECT_SOURCE_DIR}/lib
  ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/include)
target_compile_options(lf_options INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
  -Wvla -Wpointer-arith -Wundef
  -ffunction-sections -fdata-sections
  # Results must not depend on which compiler contracts a*b+c.
  -ffp-contract=off)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  # gcc 12 loses the rounding in (double)(float)x when it makes vectors of scalar code.
  target_compile_options(lf_options INTERFACE -fno-tree-slp-vectorize)
endif()
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  # Fields that are left out are zero, and long texts are written in pieces: both are meant.
  target_compile_options(lf_options INTERFACE -Wno-missing-field-initializers -Wno-string-concatenation)
endif()
if(LFUSER_WERROR)
  target_compile_options(lf_options INTERFACE -Werror)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    # What gcc can prove depends on inlining and the optimisation level: shown, but no error.
    target_compile_options(lf_options INTERFACE -Wno-error=maybe-uninitialized)
  endif()
endif()
target_link_options(lf_options INTERFACE -Wl,--gc-sections -Wl,--as-needed)
target_link_libraries(lf_options INTERFACE Threads::Threads m ${CMAKE_DL_LIBS})

if(LFUSER_SANITIZE STREQUAL "address")
  set(_flags -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(LFUSER_SANITIZE STREQUAL "thread")
  set(_flags -O1 -fsanitize=thread -fno-omit-frame-pointer)
elseif(LFUSER_SANITIZE STREQUAL "fuzzer")
  # clang's libFuzzer, which is led by what an input reaches; the fuzz programs alone are linked with its main.
  set(_flags -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # Looks for a mark before each function that is called by address; functions of generated code have none.
  list(APPEND _flags -fno-sanitize=function)
elseif(NOT LFUSER_SANITIZE STREQUAL "")
  message(FATAL_ERROR "LFUSER_SANITIZE is '${LFUSER_SANITIZE}', not address, thread or fuzzer")
else()
  set(_flags "")
  target_link_options(lf_options INTERFACE -Wl,-z,defs)
endif()
if(LFUSER_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  # The instrumentation hides from gcc that a value was set.
  list(APPEND _flags -Wno-maybe-uninitialized -Wno-stringop-overflow)
endif()
if(LFUSER_COVERAGE)
  # Counts of lines and branches, kept right between threads; ./dev test --coverage makes a table of them.
  list(APPEND _flags --coverage -fprofile-update=atomic -fprofile-abs-path)
endif()
target_compile_options(lf_options INTERFACE ${_flags})
target_link_options(lf_options INTERFACE ${_flags})
