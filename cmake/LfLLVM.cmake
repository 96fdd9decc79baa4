# lf_llvm: headers and libraries of LLVM 22, for lib/codegen alone.
find_program(LFUSER_LLVM_CONFIG_PATH ${LFUSER_LLVM_CONFIG} HINTS /usr/lib/llvm-22/bin REQUIRED)

function(_lf_llvm_config out)
  execute_process(COMMAND ${LFUSER_LLVM_CONFIG_PATH} ${ARGN}
    OUTPUT_VARIABLE text OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "[ \n]+" ";" text "${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

_lf_llvm_config(LFUSER_LLVM_VERSION --version)
if(NOT LFUSER_LLVM_VERSION MATCHES "^22\\.")
  message(FATAL_ERROR "${LFUSER_LLVM_CONFIG_PATH} is LLVM ${LFUSER_LLVM_VERSION}; LLVM 22 is needed")
endif()
_lf_llvm_config(_includedir --includedir)
_lf_llvm_config(_libdir --libdir)
_lf_llvm_config(LFUSER_LLVM_BINDIR --bindir)

add_library(lf_llvm INTERFACE)
target_include_directories(lf_llvm SYSTEM INTERFACE ${_includedir})
target_link_directories(lf_llvm INTERFACE ${_libdir})
if(LFUSER_LLVM_STATIC)
  _lf_llvm_config(_libs --link-static --libs x86 nvptx passes irreader bitwriter linker)
  _lf_llvm_config(_system --link-static --system-libs x86 nvptx passes irreader bitwriter linker)
  # zlib and zstd go in statically; what llvm-config names beyond these (z3, libxml2) is not reached from
  # the components above, and --as-needed drops it.
  list(TRANSFORM _system REPLACE "^-l(z|zstd)$" "-l:lib\\1.a")
  target_link_libraries(lf_llvm INTERFACE ${_libs} ${_system} -static-libgcc -l:libstdc++.a)
else()
  _lf_llvm_config(_libs --link-shared --libs)
  target_link_libraries(lf_llvm INTERFACE ${_libs})
endif()
set(LF_LLVM_BIN_DIR ${LFUSER_LLVM_BINDIR})
