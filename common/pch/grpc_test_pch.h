#pragma once
// Precompiled headers of tests with gRPC and coroutines.
#include "common/pch/grpc_pch.h"

#include <gtest/gtest.h>
