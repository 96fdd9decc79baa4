# lf_library(<target> [DEPS target...] [SYSTEM_LIBS library...])
#
# A position-independent static library of every *.c in the calling folder. A folder without sources
# becomes an interface target, so that its dependents need no special case. Which folder may depend
# on which is checked from the #include lines by cmake/check_layers.py.
function(lf_library target)
  cmake_parse_arguments(arg "" "" "DEPS;SYSTEM_LIBS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
  list(TRANSFORM arg_DEPS REPLACE "^(lf_math_.*)$" "$<TARGET_NAME_IF_EXISTS:\\1>")
  if(sources)
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PUBLIC ${arg_DEPS} ${arg_SYSTEM_LIBS} lf_options)
    if(target MATCHES "^lf_(api|codegen)")
      add_dependencies(${target} lf_build_id)
    endif()
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${arg_DEPS} ${arg_SYSTEM_LIBS} lf_options)
  endif()
endfunction()

# The object files of those of the given libraries that have sources.
function(lf_objects out)
  set(objects "")
  foreach(target ${ARGN})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND objects $<TARGET_OBJECTS:${target}>)
    endif()
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()

# Every internal library a test or a developer's tool may reach. The public library comes first:
# lfuser_* names are then taken from it, lf_* names from the archives.
function(lf_link_internals target)
  if(TARGET lfuser)
    target_link_libraries(${target} PRIVATE lfuser)
  endif()
  target_link_libraries(${target} PRIVATE ${ARGN} lf_schedule lf_partition lf_passes lf_analysis
    lf_parse lf_interp lf_runtime_sim lf_runtime_cpu lf_runtime_cuda lf_runtime lf_ir lf_cache lf_native lf_base lf_options)
endfunction()

# lf_tool(<name>): tools/<name>/*.c becomes build/bin/<name>.
function(lf_tool name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/${name}/*.c)
  if(sources)
    add_executable(${name} ${sources})
    lf_link_internals(${name})
    set_target_properties(${name} PROPERTIES BUILD_RPATH "$ORIGIN/../lib")
  endif()
endfunction()
