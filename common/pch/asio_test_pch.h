#pragma once
// Precompiled header for tests with coroutines or HTTP.
#include "common/pch/asio_pch.h"

#include <gtest/gtest.h>
