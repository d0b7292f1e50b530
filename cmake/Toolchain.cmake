# Compiler launcher, linker, warnings and sanitizers: one interface target, spillway_flags, that every layer links.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
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
