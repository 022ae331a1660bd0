#pragma once
// Precompiled header for tests.
#include "common/pch/std_pch.h"

#include <gtest/gtest.h>
