"""Types with bounds, for documents that come from files: what decodes such a document refuses every other value."""

from typing import Annotated, Final

from msgspec import Meta

NUMBER_MAX: Final = 1 << 53  # Above, programs that read JSON lose digits.

Count = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
Positive = Annotated[int, Meta(ge=1, le=NUMBER_MAX)]
Seed = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Amount = Annotated[float, Meta(ge=0, le=1e15)]  # Seconds, hours, rates in a second.
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Id = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
VerdictCode = Annotated[str, Meta(pattern="^(invalid|error|vacuous|unknown|valid)$")]
PromiseCode = Annotated[str, Meta(pattern="^(holds|violated|unknown|not-exercised)$")]
