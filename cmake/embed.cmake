# SPDX-License-Identifier: Apache-2.0
# Writes OUT: a header that holds the bytes of IN as a string_view called SYMBOL. Raw literals in pieces of 8 KiB.
file(READ ${IN} text)
string(LENGTH "${text}" size)
set(body "")
set(at 0)
while(at LESS size)
  string(SUBSTRING "${text}" ${at} 8000 piece)
  string(APPEND body "R\"~~~(${piece})~~~\"\n")
  math(EXPR at "${at}+8000")
endwhile()
file(WRITE ${OUT} "// generated\n#pragma once\n#include <string_view>\ninline constexpr std::string_view ${SYMBOL} =\n${body};\n")
