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
# Release warns of nothing: every other preset does, and looking for what to warn of takes a twentieth of its time.
target_compile_options(spillway_flags INTERFACE
  $<$<NOT:$<CONFIG:Release>>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wnon-virtual-dtor;-Woverloaded-virtual;-Wswitch-enum>
  $<$<BOOL:${SPILLWAY_WERROR}>:-Werror>
  -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees std::expected and std::variant as possibly uninitialized; clang and the sanitizers are more precise.
  # Garbage collection in the compiler is a sixth of a unit's time at its defaults; few units reach this heap (KiB).
  target_compile_options(spillway_flags INTERFACE
    $<$<NOT:$<CONFIG:Release>>:-Wshadow;-Wno-maybe-uninitialized>
    -Wno-subobject-linkage  # types local to a source that is joined with others
    --param=ggc-min-heapsize=700000)
else()
  # Warnings that clang counts as -Wconversion and GCC does not; functions that libstdc++ 12 deprecates and uses itself
  # (stable_sort).
  target_compile_options(spillway_flags INTERFACE
    -Wno-sign-conversion -Wno-missing-designated-field-initializers -Wno-deprecated-declarations)
endif()
target_compile_definitions(spillway_flags INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)

# Hardening of the program that is shipped (docs/security.md, "The program"; e2e/test_packages.py checks the result): an
# address that changes with each start, checks of stacks and of buffers whose size the compiler knows, and marks at the
# targets of indirect jumps. The program itself adds what the linker does. The sanitizers have checks of their own.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND SPILLWAY_SANITIZE STREQUAL "")
  target_compile_options(spillway_flags INTERFACE -fPIE -fstack-protector-strong -fstack-clash-protection
    -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},x86_64>:-fcf-protection=full>)
  # Tables of addresses are bound and made read-only before main().
  set(SPILLWAY_HARDENED_LINK -pie -Wl,-z,relro,-z,now)
endif()
if(SPILLWAY_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address)
  target_compile_options(spillway_flags INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:SPILLWAY_HEAVY>>>:-fsanitize=undefined>)
  add_link_options(-fsanitize=undefined)
elseif(SPILLWAY_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
endif()

# Options that layers marked HOT add: at -O0 documents and rules are ten times as slow.
if(CMAKE_BUILD_TYPE STREQUAL "Debug" AND CMAKE_CXX_FLAGS_DEBUG MATCHES "-O0" AND NOT CMAKE_CXX_FLAGS_DEBUG MATCHES "coverage")
  set(SPILLWAY_HOT_OPTIONS -O1)
endif()

# Options that folders add in release whose code runs once or for people: the command line takes a tenth of the build at
# -O2.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(SPILLWAY_COLD_OPTIONS -O1)
endif()

# A test says itself which line failed: where it stands in the debugger's tables costs a tenth of a unit.
if(CMAKE_CXX_FLAGS_DEBUG MATCHES "-O0 -g1$" AND SPILLWAY_SANITIZE STREQUAL "")
  set(SPILLWAY_TEST_OPTIONS -g0)
endif()

# Precompiled: the standard headers, fmt and the objects of the API; for the agent and its host what they exchange; for tests
# GoogleTest as well. Half of a unit's time at -O0 is reading these, whatever it does with them.
# The presets tidy and coverage do without: they prove that each file includes what it uses.
function(spillway_precompile kind)
  cmake_parse_arguments(PARSE_ARGV 1 A "" "" "HEADERS;OPTIONS;LIBS")
  add_library(spillway_${kind} OBJECT ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/precompiled/empty.cc)
  target_include_directories(spillway_${kind} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(spillway_${kind} PRIVATE spillway_flags fmt::fmt ${A_LIBS})
  target_compile_options(spillway_${kind} PRIVATE ${SPILLWAY_PCH_OPTIONS} ${A_OPTIONS})
  list(TRANSFORM A_HEADERS PREPEND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/precompiled/)
  target_precompile_headers(spillway_${kind} PRIVATE ${A_HEADERS})
endfunction()

if(SPILLWAY_PCH)
  # Options with which ccache recognises a unit that uses a precompiled header.
  set(SPILLWAY_PCH_OPTIONS -fpch-preprocess)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    set(SPILLWAY_PCH_OPTIONS "SHELL:-Xclang -fno-pch-timestamp")
  endif()
  spillway_precompile(pch HEADERS standard.h objects.h)
  spillway_precompile(agent_pch HEADERS standard.h objects.h agent.h)
  spillway_precompile(hot_pch HEADERS standard.h objects.h OPTIONS ${SPILLWAY_HOT_OPTIONS})
  if(SPILLWAY_TESTS)
    spillway_precompile(test_pch HEADERS standard.h tests.h objects.h OPTIONS ${SPILLWAY_TEST_OPTIONS} LIBS GTest::gtest GTest::gmock)
    spillway_precompile(agent_test_pch HEADERS standard.h tests.h objects.h agent.h OPTIONS ${SPILLWAY_TEST_OPTIONS} LIBS GTest::gtest GTest::gmock)
  endif()
endif()

# spillway_precompiled(TARGET KIND): KIND is one of those above.
function(spillway_precompiled target kind)
  if(SPILLWAY_PCH)
    target_compile_options(${target} PRIVATE ${SPILLWAY_PCH_OPTIONS})
    if(kind MATCHES "test_pch$")
      target_compile_options(${target} PRIVATE ${SPILLWAY_TEST_OPTIONS})
    endif()
    target_precompile_headers(${target} REUSE_FROM spillway_${kind})
  endif()
endfunction()
