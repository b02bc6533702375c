// Opening the files of a component, and of its parity.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "pif/component/storage.h"

namespace pif::component {

inline constexpr std::array<const char*, 3> kParitySuffixes = {".par", ".psum", ".pap"};

// As Storage::open(); kCreate: the first component of one of the 256 folders makes it, durably.
[[nodiscard]] Result<std::unique_ptr<File>> open_in_folder(Storage& storage, const std::string& path, OpenMode mode);

}  // namespace pif::component
