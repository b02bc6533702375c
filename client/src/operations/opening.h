// How a File of the interface is made.
#pragma once

#include <memory>

#include "pif/client/client.h"

namespace pif::client {

struct FileAccess {
  static File make(std::unique_ptr<FileState> state);
};

}  // namespace pif::client
