#pragma once

#include <memory>

#include "pif/component/storage.h"

namespace pif::component {

std::unique_ptr<Storage> make_real_storage();

}  // namespace pif::component
