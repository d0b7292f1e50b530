# cmake -DIN=file.json -DOUT=file.cc -DNAME=kConstant -P embed.cmake
# Writes a text file, or several one after the other, as a constant of namespace spillway::api. Both compilers take
# literals beyond the 65,536 characters that every compiler has to take.
set(text "")
foreach(file IN LISTS IN)
  file(READ "${file}" part)
  string(APPEND text "${part}")
endforeach()
file(WRITE "${OUT}.new" "#include <string_view>\n\n#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\nnamespace spillway::api {\nextern const std::string_view ${NAME};\nconst std::string_view ${NAME} = R\"EMBED(${text})EMBED\";\n}  // namespace spillway::api\n#pragma GCC diagnostic pop\n")
file(COPY_FILE "${OUT}.new" "${OUT}" ONLY_IF_DIFFERENT)
file(REMOVE "${OUT}.new")
