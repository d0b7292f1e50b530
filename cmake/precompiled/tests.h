// What nearly every test includes beyond that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
