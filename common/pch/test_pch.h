#pragma once
// Precompiled headers of tests.
#include "common/pch/std_pch.h"

#include <gtest/gtest.h>
