# Compiler launcher, linker, warnings and sanitizers: one interface target, spillway_flags, that every layer links.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  if(SPILLWAY_PCH)  # without these two ccache passes by every unit that uses a precompiled header
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  endif()
endif()
find_program(LLD ld.lld)
if(LLD)
  add_link_options(-fuse-ld=lld)
endif()

add_library(spillway_flags INTERFACE)
# GCC 12 sees std::expected and std::variant as possibly uninitialized; clang and the sanitizers judge that better.
target_compile_options(spillway_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wswitch-enum
  $<$<BOOL:${SPILLWAY_WERROR}>:-Werror>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-missing-field-initializers>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  $<$<CXX_COMPILER_ID:Clang>:-Wno-missing-designated-field-initializers>)
target_compile_definitions(spillway_flags INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS SPILLWAY_FAULTS>)
if(SPILLWAY_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address)
  target_compile_options(spillway_flags INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:SPILLWAY_HEAVY>>>:-fsanitize=undefined>)
  add_link_options(-fsanitize=undefined)
elseif(SPILLWAY_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
endif()

# What layers marked HOT add: at -O0 documents and rules are ten times as slow.
if(CMAKE_BUILD_TYPE STREQUAL "Debug" AND CMAKE_CXX_FLAGS_DEBUG MATCHES "-O0" AND NOT CMAKE_CXX_FLAGS_DEBUG MATCHES "coverage")
  set(SPILLWAY_HOT_OPTIONS -O1)
endif()

# What runs once or for people adds in release: the command line takes a tenth of the build at -O2.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(SPILLWAY_COLD_OPTIONS -O1)
endif()

# Precompiled: the standard headers and fmt; for tests GoogleTest as well. Half of a unit's time at -O0 is reading these.
# The presets tidy and coverage do without: they prove that each file includes what it uses.
if(SPILLWAY_PCH)
  foreach(kind pch test_pch hot_pch cold_pch)
    add_library(spillway_${kind} OBJECT ${CMAKE_CURRENT_LIST_DIR}/precompiled/empty.cc)
    target_link_libraries(spillway_${kind} PRIVATE spillway_flags fmt::fmt)
    target_compile_options(spillway_${kind} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
    target_precompile_headers(spillway_${kind} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/precompiled/standard.h)
  endforeach()
  target_compile_options(spillway_hot_pch PRIVATE ${SPILLWAY_HOT_OPTIONS})
  target_compile_options(spillway_cold_pch PRIVATE ${SPILLWAY_COLD_OPTIONS})
  target_link_libraries(spillway_test_pch PRIVATE GTest::gtest GTest::gmock)
  target_precompile_headers(spillway_test_pch PRIVATE ${CMAKE_CURRENT_LIST_DIR}/precompiled/tests.h)
endif()

# spillway_cold(TARGET): as a layer that is COLD.
function(spillway_cold target)
  target_compile_options(${target} PRIVATE ${SPILLWAY_COLD_OPTIONS})
  if(SPILLWAY_COLD_OPTIONS)
    spillway_precompiled(${target} cold_pch)
  else()
    spillway_precompiled(${target} pch)
  endif()
endfunction()

# spillway_precompiled(TARGET pch|hot_pch|cold_pch|test_pch)
function(spillway_precompiled target kind)
  if(SPILLWAY_PCH)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
    target_precompile_headers(${target} REUSE_FROM spillway_${kind})
  endif()
endfunction()
