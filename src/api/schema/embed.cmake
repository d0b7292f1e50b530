# cmake -DIN=file.json -DOUT=file.cc -DNAME=kConstant -P embed.cmake
# Writes a text file as a constant of namespace spillway::api.
file(READ "${IN}" text)
file(WRITE "${OUT}.new" "#include <string_view>\n\nnamespace spillway::api {\nextern const std::string_view ${NAME};\nconst std::string_view ${NAME} = R\"EMBED(${text})EMBED\";\n}  // namespace spillway::api\n")
file(COPY_FILE "${OUT}.new" "${OUT}" ONLY_IF_DIFFERENT)
file(REMOVE "${OUT}.new")
