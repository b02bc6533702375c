#include "pif/base/result.h"

#include <cerrno>
#include <cstring>

namespace pif {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
#define PIF_X(name, number, text) \
  case Code::name: return text;
      PIF_ERROR_CODES(PIF_X)
#undef PIF_X
  }
  return "unknown";
}

Code code_from_number(std::uint32_t number) {
  switch (number) {
#define PIF_X(name, value, text) case value:
    PIF_ERROR_CODES(PIF_X)
#undef PIF_X
    return static_cast<Code>(number);
    default: return Code::kInternal;
  }
}

Code code_from_errno(int error) {
  switch (error) {
    case ENOENT: return Code::kNotFound;
    case EEXIST: return Code::kExists;
    case ENOTDIR: return Code::kNotDirectory;
    case EISDIR: return Code::kIsDirectory;
    case ENOTEMPTY: return Code::kNotEmpty;
    case EACCES:
    case EPERM: return Code::kPermission;
    case ENOSPC:
    case EDQUOT: return Code::kNoSpace;
    case EROFS: return Code::kReadOnly;
    case EINVAL:
    case ENAMETOOLONG: return Code::kInvalid;
    case ETIMEDOUT: return Code::kTimeout;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE: return Code::kUnavailable;
    case EOPNOTSUPP:
    case EXDEV:
    case ENOTTY:
    case ENOSYS: return Code::kUnsupported;
    case EFBIG:
    case EMSGSIZE: return Code::kTooLarge;
    case EMFILE:  // limits of the process or the machine
    case ENFILE:
    case ENOMEM:
    case EBUSY:
    case EADDRINUSE: return Code::kBusy;
    default: return Code::kIo;
  }
}

std::string Error::to_string() const { return node.empty() ? text : node + ": " + text; }

tl::unexpected<Error> fail_errno(int error, std::string_view what) {
  const std::string_view what_to_do = error == EMFILE ? ": raise the limit (ulimit -n)" : "";
  return fail(code_from_errno(error), std::string(what) + ": " + std::strerror(error) + std::string(what_to_do));
}

}  // namespace pif
