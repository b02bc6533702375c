// The server's answer about one open file, or one being created: all that is needed to use its components. Values; any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pif/base/format.h"
#include "pif/base/ids.h"
#include "pif/component/component.h"
#include "pif/parity/layout.h"
#include "pif/proto/messages.pb.h"

namespace pif::access {

struct FileParts {
  FileId file;
  std::string path;  // as opened; for messages to people
  bool creating = false;
  bool placed = false;  // its data is in forks
  Format format;
  proto::FileLayout file_layout;  // `layout` as messages have it
  parity::Layout layout = *parity::Layout::make(1);
  std::vector<proto::NodeInfo> nodes;  // of the layout, in its order: layout.width() of them
  std::string capability;
  std::int64_t capability_until = 0;  // wall seconds; renew before
  std::uint32_t rights = 0;           // Rights asked for
  std::uint64_t epoch = 0;
  std::uint32_t owner = 0;  // uid
  std::uint64_t view = 0;   // index of the view that `nodes` came in; 0: not known
  FileLength file_length;   // hint: as of the last commit, flush or close
  std::map<std::string, std::string> attributes;

  // Its LFSs keep parity: nothing can be overwritten in place.
  bool is_protected() const { return file_layout.form() > 0; }
  // Lost or rebuilding in that view: what has parity is read and written without it. lfs: below layout.width().
  bool is_absent(LfsIndex lfs) const;
  // How each of its components is stored.
  component::Shape stored_shape() const { return component::Shape::of(file, format, file_layout.form()); }
  // The description of component `index` of the file that an LFS gets when it makes or writes it; index <
  // layout.width().
  proto::ComponentShape shape(LfsIndex index) const;
};

}  // namespace pif::access
