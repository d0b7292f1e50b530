// Numbers as Go prints them. Thread: any (pure). Source: Go, package fmt, verb %v.
#pragma once

#include <string>

namespace spillway::structural {

/// The fewest digits that give the number again: "0.5", "10", "1e+21".
std::string go_number(double value);

}  // namespace spillway::structural
