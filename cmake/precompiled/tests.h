// Headers that nearly every test includes, beyond the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
