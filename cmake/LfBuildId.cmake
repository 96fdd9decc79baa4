# lf_build_id.h: `#define LF_BUILD_ID "0.1.0-<hash of the sources and of LLVM's version>"`, by which liblfuser.so knows the code
# generators that were built with it, and caches know the library that filled them. Included as "lf_build_id.h".
# Run with -P it writes the header; included, it makes the rule.
if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB_RECURSE sources LIST_DIRECTORIES false
    ${ROOT}/lib/*.[ch] ${ROOT}/lib/*.def ${ROOT}/runtime/*.[ch] ${ROOT}/runtime/*.def ${ROOT}/include/*.h)
  list(SORT sources)
  set(text "")
  foreach(source ${sources})
    file(SHA256 ${source} hash)
    file(RELATIVE_PATH name ${ROOT} ${source})
    string(APPEND text "${name} ${hash}\n")
  endforeach()
  string(SHA256 hash "${text} LLVM ${LLVM}")
  string(SUBSTRING ${hash} 0 16 hash)
  file(WRITE ${OUTPUT} "#define LF_BUILD_ID \"${VERSION}-${hash}\"\n")
  return()
endif()

set(_header ${PROJECT_BINARY_DIR}/generated/lf_build_id.h)
file(GLOB_RECURSE _sources CONFIGURE_DEPENDS LIST_DIRECTORIES false
  lib/*.[ch] lib/*.def runtime/*.[ch] runtime/*.def include/*.h)
add_custom_command(
  OUTPUT ${_header}
  COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DOUTPUT=${_header} -DVERSION=${PROJECT_VERSION} -DLLVM=${LFUSER_LLVM_VERSION}
    -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${_sources} ${CMAKE_CURRENT_LIST_FILE}
  VERBATIM)
add_custom_target(lf_build_id DEPENDS ${_header})
target_include_directories(lf_options INTERFACE ${PROJECT_BINARY_DIR}/generated)
