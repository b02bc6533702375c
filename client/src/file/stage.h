// What file_write.cc and variable.cc range of staging.
#pragma once

#include <cstdint>

#include "file/file_state.h"
#include "pif/net/buffer.h"

namespace pif::client {

// Bytes one LFS's stage may hold, so that all of a wide file's stay bounded.
std::uint64_t stage_limit(const FileState& file);
net::Buffer stage_body(const Stage& stage);

}  // namespace pif::client
