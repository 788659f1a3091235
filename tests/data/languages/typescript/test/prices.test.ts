import { expect, test } from "vitest";
import { total } from "../src/prices";

test("adds", () => {
  expect(total([1, 2])).toBe(3);
});
