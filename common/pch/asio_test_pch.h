#pragma once
// Precompiled headers of tests with coroutines or HTTP.
#include "common/pch/asio_pch.h"

#include <gtest/gtest.h>
