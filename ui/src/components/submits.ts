// A form that is sent by the script, and never by the browser.
export const submits =
  (send: () => Promise<void>) =>
  (event: Event): void => {
    event.preventDefault();
    void send();
  };
