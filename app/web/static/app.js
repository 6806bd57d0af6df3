// Comfort only: every page is complete without this file.
"use strict";

for (const button of document.querySelectorAll("[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  const label = [...button.childNodes];
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      button.textContent = "Copied";
    } catch {
      // no clipboard without https: select it, so that Ctrl C does the rest
      if (source.select) source.select();
      else getSelection().selectAllChildren(source);
      button.textContent = "Selected";
    }
    setTimeout(() => button.replaceChildren(...label), 1500);
  });
}

const box = document.querySelector("textarea[name=log]");
if (box) {
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) box.form.requestSubmit();
  });
  box.addEventListener("drop", async (event) => {
    const file = event.dataTransfer.files[0];
    if (!file) return;
    event.preventDefault();
    box.value = await file.text();
  });
}
