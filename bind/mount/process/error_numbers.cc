#include "process/error_numbers.h"

#include <cerrno>

namespace pif::mount {

int errno_of(Code code) {
  switch (code) {
    case Code::kOk: return 0;
    case Code::kInvalid:
    case Code::kEndOfFile: return EINVAL;
    case Code::kNotFound: return ENOENT;
    case Code::kExists: return EEXIST;
    case Code::kNotDirectory: return ENOTDIR;
    case Code::kIsDirectory: return EISDIR;
    case Code::kNotEmpty: return ENOTEMPTY;
    case Code::kPermission: return EACCES;
    case Code::kStaleFile: return ESTALE;
    case Code::kBusy:
    case Code::kRetry: return EBUSY;
    case Code::kNoSpace: return ENOSPC;
    case Code::kReadOnly: return EROFS;
    case Code::kTimeout: return ETIMEDOUT;
    case Code::kUnavailable: return EHOSTDOWN;
    case Code::kTooLarge: return EFBIG;
    case Code::kVersion: return EPROTO;
    case Code::kUnsupported: return EOPNOTSUPP;
    case Code::kCancelled: return EINTR;
    case Code::kBadCapability:
    case Code::kIo:
    case Code::kCorrupt:
    case Code::kInternal:
    case Code::kStaleNode:
    case Code::kStaleServer:
    case Code::kStaleData:
    case Code::kOldView:
    case Code::kOutcomeUnknown: return EIO;
  }
  return EIO;  // of a newer server
}

}  // namespace pif::mount
